package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// secretPlace is a work directory in a git repository, with files that are denied
// to read by the starter rules.
func secretPlace(t *testing.T) Context {
	ctx := testContext(t)
	for _, name := range []string{"server.key", "sub/secrets.txt", "empty/x", "src/server.key/a"} {
		write(t, filepath.Join(ctx.Root, name), "hush\n")
	}
	return ctx
}

// Under the starter rules, what is denied to read is not printed either.
func TestWhatIsDeniedToReadIsNotPrintedByAnotherSpelling(t *testing.T) {
	r := rulesOf(t, secretPlace(t), string(shipped(t, "starter")))
	for c, want := range map[string]Verdict{
		// what git reads in its own way
		"git show :0:.env": Ask, "git cat-file -p :0:.env": Ask, "git show 'HEAD^{/a:b}:.env'": Ask, "git show 'HEAD@{0:00}:.env'": Ask, "git show HEAD:.env": Ask,
		"git grep -h '' ':(top).env'": Ask, "git grep -h '' -- '.e*'": Ask, "git grep -h '' ':(icase).ENV'": Ask, "git grep -h '' '[.]env'": Ask, "git grep -h ''": Ask,
		"git diff ':(top).env'": Ask, "git diff '.e*'": Ask, "git diff '.e?v'": Ask, `git diff '\.env'`: Ask, "git diff -- '.e*'": Ask, "git diff HEAD:.env HEAD:main.go": Ask,
		"git log -p -- '.e*'": Ask, "git log -L 1,1:.env": Ask, "git log -L1,1:.env": Ask, "git log -p": Ask, "git log --stat -- '.e*'": Ask, "git blame '.e*'": Ask, "git blame :.env": Ask,
		"git diff": Ask, "git diff src": Ask, "git diff HEAD": Ask, "git diff HEAD -- src": Ask, "git diff . empty": Ask, "git diff -- .": Ask, "git diff abc1234 -- main.go": Ask, "git diff main.go -- main.go": Ask,
		"git show": Ask, "git show HEAD": Ask, "git show abc1234": Ask, "git show --stat abc1234": Ask, "git show -s HEAD:main.go": Ask, "git cat-file -p HEAD:main.go": Ask, "git cat-file -p abc1234": Ask,
		"git diff -- gone": Ask, "git diff --stat -p": Ask, "git diff -p --stat": Ask, "git log -S x": Ask, "git diff --check": Ask,
		// directories
		"diff -N . empty": Ask, "diff . sub": Ask, "diff -N main.go sub": Ask, "rg '' .": Ask, "rg x": Ask, "rg x src": Ask, "rg x main.go src": Ask, "rg -l x": Ask,
		"git log -p -- src": Ask, "git log -p -- main.go gone": Ask, "git log -p HEAD -- main.go": Ask, "git log -p --follow -- main.go": Ask, "git log -p -- .env": Ask, "git show HEAD -- src": Ask, "git show abc1234 -- main.go": Ask,
		// what may be
		"git log -p -3 -- main.go": Allow, "git show HEAD -- main.go src/a.go": Allow,
		"git status": Allow, "git diff --stat": Allow, "git diff --cached --name-only HEAD~1 -- src": Allow, "git diff main...HEAD --stat": Allow, "git diff main.go": Allow, "git diff -U5 -- main.go src/a.go": Allow, "git diff HEAD -- main.go": Allow,
		"git log --oneline -5": Allow, "git log --stat -- src": Allow, "git show --stat": Allow, "git show --oneline --name-only HEAD": Allow, "git blame -L 1,5 main.go": Allow, "git cat-file -t HEAD": Allow, "git log --oneline main..HEAD": Allow,
		"diff -u main.go src/a.go": Allow, "rg -n x main.go src/a.go": Allow, "rg --files": Allow, "grep -n x main.go": Allow,
	} {
		if e := r.Explain(command(c)); e.Verdict != want {
			t.Errorf("%q is %s, want %s: %s", c, e.Verdict, want, e.Reason)
		}
	}
}

// With the developer rules too, what is merely met is printed; what is named asks.
func TestASecretThatIsNamedToGitAsksHoweverItIsNamed(t *testing.T) {
	ctx := secretPlace(t)
	const private = "\n[[rule]]\nname = \"private\"\nkind = \"read\"\ndeny-paths = [\"sub/b.txt\"]\n"
	r := rulesOf(t, ctx, string(shipped(t, "starter", "developer"))+private)
	for c, want := range map[string]Verdict{
		"git diff": Allow, "git show HEAD:main.go": Allow, "git show 'HEAD@{12:30}'": Allow, "git log -p -L 1,5:main.go": Allow, "git log -p -L1,5:main.go": Allow, "git diff HEAD:main.go..HEAD:src/a.go": Allow, "git show HEAD": Allow, "rg x": Allow,
		"cd src && git show HEAD:main.go": Allow, "cd src && git show HEAD:./a.go": Allow,
		"git show :0:.env": Ask, "git show ':/fix'": Ask, "git show HEAD:a:.env": Ask, "git show 'HEAD^{/a:b}:.env'": Ask, "git log -L 1,1:.env": Ask, "git log -p -L1,1:server.key": Ask, "git diff 'HEAD:server.key..HEAD:main.go'": Ask, "git diff HEAD:main.go...HEAD:server.key": Ask,
		"git grep '' ':(top).env'": Ask, "git grep '' '.e*'": Ask, "git diff '.e*'": Ask, `git diff '\.env'`: Ask, "git cat-file -p :.env": Ask, "git log -p -- ':!main.go'": Ask,
		"git show HEAD:sub/b.txt": Ask, "cd src && git show HEAD:sub/b.txt": Ask, "cd sub && git show HEAD:./b.txt": Ask, "cd src && git show HEAD:../sub/b.txt": Ask, "git show HEAD:../x": Ask,
	} {
		if e := r.Explain(command(c)); e.Verdict != want {
			t.Errorf("%q is %s, want %s: %s", c, e.Verdict, want, e.Reason)
		}
	}
}

// A path in a commit is counted from where the repository begins, which may be
// above the work directory.
func TestAPathInACommitIsCountedFromTheRepository(t *testing.T) {
	ctx := secretPlace(t)
	if err := os.Rename(filepath.Join(ctx.Root, ".git"), filepath.Join(filepath.Dir(ctx.Root), ".git")); err != nil {
		t.Fatal(err)
	}
	r := rulesOf(t, ctx, string(shipped(t, "starter", "developer"))+"\n[[rule]]\nname = \"private\"\nkind = \"read\"\ndeny-paths = [\"sub/b.txt\"]\n")
	for c, want := range map[string]Verdict{"git show HEAD:work/main.go": Allow, "git show HEAD:./main.go": Allow, "git show HEAD:other/x": Ask, "git show HEAD:work/sub/b.txt": Ask, "git show HEAD:./sub/b.txt": Ask} {
		if e := r.Explain(command(c)); e.Verdict != want {
			t.Errorf("%q is %s, want %s: %s", c, e.Verdict, want, e.Reason)
		}
	}
}

// /proc/self is another for us than for the command.
func TestAPathThroughProcAsks(t *testing.T) {
	ctx := testContext(t)
	t.Chdir(ctx.Root)
	write(t, "notes", "fine\n")
	for link, to := range map[string]string{"sub/notes": "../.env", "x": "/proc/self/cwd/notes", "y": "/proc/self/cwd", "z": "x", "w": "../../../../../../../../../../../../../proc/self/cwd/notes"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	r := rulesOf(t, ctx, string(shipped(t, "starter")))
	for _, c := range []string{"cd sub && cat ../x", "cat x", "cat y/notes", "cat z", "cat w", "cat /proc/self/cwd/notes", "cat < x", "cd y && ls", "cat /dev/stdin", "ls /proc/self/cwd"} {
		if e := r.Explain(command(c)); e.Verdict != Ask {
			out, _ := exec.Command("sh", "-c", c).CombinedOutput()
			t.Errorf("%q is %s: %s; it prints %q", c, e.Verdict, e.Reason, out)
		}
	}
}
