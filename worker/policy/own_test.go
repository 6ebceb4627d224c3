package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ownContext is a work directory beside our configuration, ../config, which is
// there, with rules in it.
func ownContext(t testing.TB) Context {
	ctx := testContext(t)
	write(t, filepath.Join(ctx.Own[0], "rules.toml"), "")
	if err := os.Symlink(ctx.Own[0], filepath.Join(ctx.Root, "cfg")); err != nil {
		t.Fatal(err)
	}
	return ctx
}

func TestWhatIsOursIsFoundWhereverACommandGoes(t *testing.T) {
	r := rulesOf(t, ownContext(t), string(shipped(t, "starter", "developer")))
	for _, c := range []string{
		"cd ../config && echo x > rules.toml", "cd ../config; echo x > rules.toml", "cd ..; rm -r config", "cd .. && rm -r config", "cd .. && mv config c2", "(cd ../config && rm rules.toml)", "sh -c 'cd ../config && echo x > rules.toml'", "pushd ../config; rm rules.toml", "cd src && cd ../../config && touch x", "cd .. && cd config && tee x", "cd ../con* && rm rules.toml", "cd cfg && rm rules.toml", "cd -P ../config && touch x", "cd .. && (cd ./config; touch x)", "if cd ../config; then rm rules.toml; fi", "env -C ../config rm rules.toml", "env --chdir=.. rm -r config", "make -C ../config x >rules.toml", "cd ../config && > rules.toml", "for d in ../config; do cd $d; rm rules.toml; done",
		"cp main.go ../config/rules.toml", "cp main.go ../con*/rules.toml", "rm -rf ../c*", "rm -rf ../[c]onfig", "rm ../config/*", "rm -r ../*", "touch ../{config,x}/y", "cp main.go cfg", "cp main.go ../config/../config/rules.toml", `cp main.go "$PWD/../config/rules.toml"`, `cp main.go "$(pwd)/../config/rules.toml"`, "install -m 600 main.go -t ../config", "install -t../config main.go", "ln -sf main.go ../config/rules.toml",
		"tee ../config/rules.toml < main.go", "dd if=main.go of=../config/rules.toml", "python3 -c \"open('../config/rules.toml','w')\"", "git -C ../config init", "tar -C ../config -xf main.go", "rsync main.go ../config/", "sed -i s/a/b/ ../config/rules.toml", "perl -pi -e s/a/b/ ../config/rules.toml", `awk 'BEGIN{print > "../config/rules.toml"}'`,
		"echo x > up/config/rules.toml", "echo x 3>../config/rules.toml", ": > ../config/rules.toml", "exec 3<>../config/rules.toml", "{ echo x; } > ../config/rules.toml", "echo x >../con*/rules.toml", "find ../config -delete", "find .. -name rules.toml -delete", "find .. -name rules.toml -exec rm {} +",
		"xargs rm <<< ../config/rules.toml", "echo ../config/rules.toml | xargs rm", "echo ../config | xargs -I{} touch {}/x", "F=../config/rules.toml; echo x > $F", "F=../config; echo x > $F/rules.toml", "F=config; touch ../${F}/x", "D=..; cd $D; rm -r config", "export F=../config; touch $F/x", "for f in ../config/*; do rm $f; done",
		"truncate -s0 ../config/rules.toml", "rm -rf ..", "patch -p0 ../config/rules.toml main.go", "curl -o ../config/rules.toml http://x", "curl -o../config/rules.toml http://x", "vim -c wq ../config/rules.toml", "openssl enc -out ../config/rules.toml", "zstd -d main.go -o ../config/rules.toml", "gzip ../config/rules.toml", "xz -d ../config/rules.toml.xz", "unlink ../config/rules.toml", "gcc -o ../config/x x.c", "zip ../config/x.zip main.go",
	} {
		if e := r.Explain(command(c)); e.Verdict != Deny || e.By != BuiltIn {
			t.Errorf("%q is %s by %q: %s", c, e.Verdict, e.By, e.Reason)
		}
	}
	i := command("echo x > $F/rules.toml")
	i.Env = map[string]string{"F": "../config"}
	if e := r.Explain(i); e.Verdict != Deny {
		t.Errorf("from its environment: %s", e.Verdict)
	}
}

// What cannot be followed is not allowed by --approve all, nor by a grant, if it
// names what is ours.
func TestWhatMayTouchOursIsAlwaysAskedFor(t *testing.T) {
	now := time.Unix(1000, 0)
	ctx := ownContext(t)
	ctx.Now = func() time.Time { return now }
	grants, err := NewGrants(&keeper{kept: map[string]Grant{}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewBook(ctx, ModeAll, grants)
	if err != nil {
		t.Fatal(err)
	}
	for c, want := range map[string]Verdict{
		`d=$(dirname "$PWD"); echo x > "$d/config/rules.toml"`: Ask, "eval \"cd ..; x con''fig\"": Ask, "xxd -r main.go ../config/rules.toml": Ask, "other " + strings.Repeat("a/b ", 6000): Ask, "echo config | while read d; do x ../$d; done": Ask, "ls .. | grep config | xargs -I{} other ../{}": Ask, "other ../config/rules.toml": Ask, "other --write=../config/x": Ask, "cd ../config && other": Ask, "other < ../config/rules.toml": Allow,
		"cat ../config/rules.toml": Allow, "ls ../config": Allow, "diff main.go ../config/rules.toml": Allow, "cd ../config && ls": Allow,
		"other": Allow, "git fetch conf": Allow, "other config": Allow, "make config": Allow, "sh -c 'echo reconfigure'": Allow, "echo $x": Allow, "touch config": Allow, "cd .. && ls": Allow, "for f in *; do x $f; done": Allow, "npm run configure": Allow, "rm -r src": Allow,
	} {
		item := inSession(command(c), "s")
		e := b.Judge(item)
		if e.Verdict != want {
			t.Errorf("--approve all: %q is %s, want %s: %s", c, e.Verdict, want, e.Reason)
		}
		if want != Ask {
			continue
		}
		if e.Grantable() || !strings.Contains(e.Reason, "Countersign's own files") {
			t.Errorf("%q can be granted: %v; it is asked for because %s", c, e.Grantable(), e.Reason)
		}
		if err := grants.Add(GrantExactly(item, e, now, time.Time{})); err != nil {
			t.Fatal(err)
		}
		if e := b.Judge(item); e.Verdict != Ask {
			t.Errorf("%q is granted", c)
		}
	}
}
