package policy

import (
	"path/filepath"
	"testing"
)

func TestGlobsMatchWholeNames(t *testing.T) {
	for _, c := range []struct {
		glob     string
		yes, not []string
	}{
		{"**", []string{".", "a", "a/b/c", ".x"}, nil},
		{"*", []string{"a", ".x"}, []string{".", "a/b"}},
		{"src/**", []string{"src", "src/a", "src/a/b"}, []string{"srcx", "a/src", "."}},
		{"src/*", []string{"src/a"}, []string{"src", "src/a/b"}},
		{"**/.env*", []string{".env", "a/.env", "a/b/.env.x"}, []string{"env", ".env/a", "a.env"}},
		{"**/*.pem", []string{"a.pem", "x/y/b.pem", ".pem"}, []string{"a.pemx", "a.pem/b"}},
		{"**/.git/**", []string{".git", ".git/a", "a/.git/b/c"}, []string{".gitx", "a/x.git/b"}},
		{"a/**/b/**/c", []string{"a/b/c", "a/x/b/y/z/c", "a/b/b/c"}, []string{"a/c", "a/b", "b/c", "a/b/c/d"}},
		{"a/?/[bc]", []string{"a/x/b", "a/y/c"}, []string{"a/xx/b", "a/x/d"}},
		{"/etc/**", []string{"/etc", "/etc/x"}, []string{"etc", "/etcx"}},
		{"src/main.go", []string{"src/main.go"}, []string{"main.go", "src/main.gox", "x/src/main.go"}},
	} {
		g, err := parseGlob(c.glob, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range c.yes {
			if !g.match(p) {
				t.Errorf("%s does not match %s", c.glob, p)
			}
		}
		for _, p := range c.not {
			if g.match(p) {
				t.Errorf("%s matches %s", c.glob, p)
			}
		}
	}
	g, err := parseGlob("**/ID_*", true)
	if err != nil || !g.match("a/id_RSA") {
		t.Error("case is not folded where the file system folds it")
	}
}

func TestGlobsThatMeanNothingAreRefused(t *testing.T) {
	for _, text := range []string{"", "/", "a//b", "a/", "./a", "../a", "a/../b", "a**", "~/a", "[a"} {
		if _, err := parseGlob(text, false); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestNamesThatWindowsReadsInItsOwnWayAsk(t *testing.T) {
	for word, odd := range map[string]bool{"src/a.go": false, "./a": false, "../a": false, "a.": true, "a /b": true, ".env::$DATA": true, "GIT~1/config": true, "C:x": true} {
		if got := oddName(word) != ""; got != odd {
			t.Errorf("%q: %v", word, got)
		}
	}
}

func TestCaseIsFoldedInDenyWhereTheFileSystemFoldsIt(t *testing.T) {
	ctx := testContext(t)
	for fold, want := range map[bool]Verdict{false: Ask, true: Deny} {
		ctx.FoldCase = fold
		if e := rulesOf(t, ctx, denies).Explain(command("sudo KubeCtl x")); e.Verdict != want {
			t.Errorf("folding %v: %s", fold, e.Verdict)
		}
	}
}

func TestCdIsNotUnderstoodWhereCDPathSendsItElsewhere(t *testing.T) {
	ctx := testContext(t)
	ctx.CDPath = "/tmp"
	r := rulesOf(t, ctx, string(shipped(t, "starter")))
	for c, want := range map[string]Verdict{"cd src && ls": Ask, "cd ./src && ls": Allow, "cd " + filepath.Join(ctx.Root, "src") + " && ls": Allow} {
		if e := r.Explain(command(c)); e.Verdict != want {
			t.Errorf("%s: %s: %s", c, e.Verdict, e.Reason)
		}
	}
}
