package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/app/config"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

func TestProgramsAreLookedForWhereCommandsFindThem(t *testing.T) {
	b := newBench(t)
	bin := filepath.Join(filepath.Dir(b.work), "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	b.write(filepath.Join(bin, "mytool"), "")
	if err := os.Chmod(filepath.Join(bin, "mytool"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.rules("[[rule]]\nname = \"mine\"\nkind = \"exec\"\nallow = \"mytool\"\n")
	mytool := policy.Item{Task: execute.Task{Kind: "exec", Command: "mytool"}}
	for what, c := range map[string]struct {
		env    []string
		remove []string
		want   policy.Verdict
	}{
		"in the PATH of commands":     {[]string{"PATH=" + bin}, nil, policy.Allow},
		"not in it":                   {[]string{"PATH=/usr/bin"}, nil, policy.Ask},
		"in the PATH that counts":     {[]string{"PATH=/usr/bin", "PATH=" + bin}, nil, policy.Allow},
		"without a PATH":              {[]string{"HOME=/"}, nil, policy.Ask},
		"with an empty PATH":          {[]string{"PATH="}, nil, policy.Ask},
		"where the PATH is taken out": {[]string{"PATH=" + bin}, []string{"PAT*"}, policy.Ask},
	} {
		t.Setenv("PATH", bin) // what this process has does not matter
		ctx := policyContext(b.place, config.Config{Environment: config.Environment{Remove: c.remove}}, b.place.rulesFile(), b.work, c.env)
		r, found, err := readRules(b.place.rulesFile(), false, ctx)
		if err != nil || !found {
			t.Fatal(err)
		}
		if e := r.Explain(mytool); e.Verdict != c.want {
			t.Errorf("%s: %s: %s", what, e.Verdict, e.Reason)
		}
	}
}

func TestACDPATHOfTheLoginEnvironmentMakesCdUncertain(t *testing.T) {
	b := newBench(t)
	ctx := policyContext(b.place, config.Config{}, b.place.rulesFile(), b.work, []string{"PATH=/usr/bin:/bin", "CDPATH=/elsewhere"})
	r, err := policy.Parse("r", []byte("[[rule]]\nname = \"l\"\nkind = \"exec\"\nallow = \"ls\"\n"), ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(b.work, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if e := r.Explain(policy.Item{Task: execute.Task{Kind: "exec", Command: "cd sub && ls"}}); e.Verdict != policy.Ask || !strings.Contains(e.Reason, "CDPATH") {
		t.Errorf("%s: %s", e.Verdict, e.Reason)
	}
}

func TestToolCallsNeverWriteToWhatIsOurs(t *testing.T) {
	b := newBench(t)
	elsewhere := filepath.Join(b.work, "my-rules.toml")
	ctx := policyContext(b.place, config.Config{}, elsewhere, b.work, []string{"PATH=/usr/bin:/bin"})
	r, found, err := readRules(b.place.rulesFile(), false, ctx)
	if err != nil || found {
		t.Fatalf("found %v, %v", found, err)
	}
	for _, c := range []string{"cp x ../config/rules.toml", "cp x my-rules.toml/../my-rules.toml", "echo >../data/countersign.db"} {
		if e := r.Explain(policy.Item{Task: execute.Task{Kind: "exec", Command: c}}); e.Verdict != policy.Deny {
			t.Errorf("%s: %s: %s", c, e.Verdict, e.Reason)
		}
	}
	if e := r.Explain(policy.Item{Task: execute.Task{Kind: "write", Path: "my-rules.toml"}}); e.Verdict != policy.Deny {
		t.Errorf("the rule file itself: %s: %s", e.Verdict, e.Reason)
	}
}

func TestARuleFileThatWasNamedHasToBeThere(t *testing.T) {
	b := newBench(t)
	ctx := policyContext(b.place, config.Config{}, "x", b.work, nil)
	if _, _, err := readRules(b.place.rulesFile(), true, ctx); err == nil {
		t.Error("it is not")
	}
}
