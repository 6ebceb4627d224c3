package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheFilesThatACommandNamesAreFound(t *testing.T) {
	root := testContext(t).Root
	for c, want := range map[string][]string{
		"ls":                                   nil,
		"sh ./src/a.go main.go":                {"main.go", "src/a.go"},
		"cd sub && sh b.txt":                   {"sub/b.txt"},
		"tail -n 3 main.go | grep x":           nil,
		"cat main.go | sh":                     {"main.go"},
		"PATH=. cat main.go":                   {"main.go"},
		"sh -c 'sh main.go'":                   {"main.go"},
		"x --file=main.go":                     {"main.go"},
		"in/a.go":                              {"src/a.go"},
		"echo $(sh src/a.go)":                  {"src/a.go"},
		"sh src missing":                       nil,
		"sh " + filepath.Join(root, "main.go"): {"main.go"},
	} {
		var abs []string
		for _, w := range want {
			abs = append(abs, filepath.Join(root, w))
		}
		if got, more := NamedFiles(root, command(c)); !slices.Equal(got, abs) || more {
			t.Errorf("%q names %q, want %q; more: %v", c, got, abs, more)
		}
	}
	i := command("sh b.txt")
	i.Cwd = "sub"
	if got, _ := NamedFiles(root, i); len(got) != 1 {
		t.Errorf("from its directory: %q", got)
	}
}

func TestAScriptIsFoundHoweverACommandNamesIt(t *testing.T) {
	root := testContext(t).Root
	for _, name := range []string{"run.sh", "sub/run2.sh", "bin/deploy"} {
		write(t, filepath.Join(root, name), "true\n")
	}
	if err := os.Symlink("/proc/self/cwd/run.sh", filepath.Join(root, "proc")); err != nil {
		t.Fatal(err)
	}
	for c, want := range map[string]string{
		"sh < run.sh": "run.sh", "sh <run.sh": "run.sh", "bash 0< run.sh": "run.sh", "sh -s < run.sh": "run.sh", "(sh < run.sh)": "run.sh", "while read l; do eval \"$l\"; done < run.sh": "run.sh", "cd sub && sh < run2.sh": "sub/run2.sh", "sh <> run.sh": "run.sh",
		"make -frun.sh": "run.sh", "awk -frun.sh main.go": "run.sh", "make -nfrun.sh": "run.sh", "x --a=b=run.sh": "run.sh", "x -a b:run.sh": "run.sh", "curl -d @run.sh x": "run.sh", "xargs -a run.sh sh -c": "run.sh", "git -c core.pager=./run.sh log": "run.sh",
		"BASH_ENV=./run.sh bash -c true": "run.sh", "BASH_ENV=run.sh bash -c true": "run.sh", "ENV=run.sh sh -i": "run.sh", "ENV=run.sh cat main.go": "run.sh", "PATH=bin deploy": "bin/deploy", "PATH=\"$PWD/bin:$PATH\" deploy": "bin/deploy", "export BASH_ENV=run.sh; bash -c true": "run.sh",
		"sh \"$PWD/run.sh\"": "run.sh", "sh $PWD/run.sh": "run.sh", "sh ${PWD}/sub/run2.sh": "sub/run2.sh", "sh \"$(pwd)/run.sh\"": "run.sh", "X=run.sh; sh $X": "run.sh", "D=sub; F=$D/run2; sh $F.sh": "sub/run2.sh", "for f in run.sh; do sh $f; done": "run.sh", "for f in *.sh; do sh ./$f; done": "run.sh", "A='-e run.sh'; sh $A": "run.sh",
		"eval \"$(<run.sh)\"": "run.sh", "sh <<< \"$(cat run.sh)\"": "run.sh", "sh <<E\n. ./run.sh\nE": "run.sh", "bash <<< run.sh": "run.sh",
		"pushd sub; sh run2.sh": "sub/run2.sh", "(cd sub; sh run2.sh)": "sub/run2.sh", "(cd sub && cd deep && sh ../run2.sh)": "sub/run2.sh", "env -C sub sh run2.sh": "sub/run2.sh", "env --chdir=sub sh run2.sh": "sub/run2.sh", "make -C sub -f run2.sh": "sub/run2.sh", "make -Csub -frun2.sh": "sub/run2.sh", "cd su* && sh run2.sh": "sub/run2.sh", "npm --prefix sub x run2.sh": "sub/run2.sh",
		"sh run.s?": "run.sh", "sh ./*.sh": "run.sh", "sh [r]un.sh": "run.sh", "sh s*/run*": "sub/run2.sh", "sh */*.sh": "sub/run2.sh",
		"sh /proc/self/cwd/run.sh": "run.sh", "sh proc": "run.sh",
	} {
		if got, _ := NamedFiles(root, command(c)); !slices.Contains(got, filepath.Join(root, want)) {
			t.Errorf("%q: %s is not among %q", c, want, got)
		}
	}
	for name, value := range map[string]string{"BASH_ENV": "run.sh", "LD_PRELOAD": "./none:./run.sh", "X": "$PWD/run.sh"} {
		for _, c := range []string{"bash -c true", "cat main.go", "sh $X"} {
			i := command(c)
			i.Env = map[string]string{name: value}
			if got, _ := NamedFiles(root, i); !slices.Contains(got, filepath.Join(root, "run.sh")) && (name != "X" || c == "sh $X") {
				t.Errorf("%q with %s=%s: %q", c, name, value, got)
			}
		}
	}
}

func TestOfManyFilesThoseThatMayRunAreComparedAndItIsSaidThatThereAreMore(t *testing.T) {
	root := testContext(t).Root
	write(t, filepath.Join(root, "run.sh"), "true\n")
	var many []string
	for n := range maxFiles + 20 {
		name := fmt.Sprintf("f%04d", n)
		write(t, filepath.Join(root, name), "")
		many = append(many, name)
	}
	few, all := strings.Join(many[:200], " "), strings.Join(many, " ")
	for c, wantMore := range map[string]bool{
		"cat " + few + " && sh run.sh": false, "sh run.sh " + few: false, "cat " + all + " && sh run.sh": true, "sh run.sh " + all: true, "cat f* > /dev/null; sh run.sh": true, "sh run.sh " + strings.Repeat("x ", 10) + "f*": true,
		"sh run.sh; " + strings.Repeat("x/*/../*/../* ", 20): false,
	} {
		got, more := NamedFiles(root, command(c))
		if more != wantMore || !slices.Contains(got, filepath.Join(root, "run.sh")) || len(got) > maxFiles {
			t.Errorf("%.40q: %d files, run.sh among them: %v, more: %v, want %v", c, len(got), slices.Contains(got, filepath.Join(root, "run.sh")), more, wantMore)
		}
	}
}
