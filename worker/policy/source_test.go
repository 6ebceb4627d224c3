package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kept is what would be on disk.
type kept struct {
	text []byte
	err  error
}

func (k *kept) RulesInForce(string) ([]byte, error) { return k.text, nil }

func (k *kept) KeepRules(_ string, text []byte) error {
	if k.err != nil {
		return k.err
	}
	k.text = append([]byte{}, text...)
	return nil
}

const (
	allowsTrue  = "[[rule]]\nname = \"nothing\"\nkind = \"exec\"\nallow = [\"true\"]\n"
	allowsFalse = "[[rule]]\nname = \"something\"\nkind = \"exec\"\nallow = [\"false\"]\n"
	failsItself = allowsTrue + "[[test]]\ncommand = \"true\"\nexpect = \"deny\"\n"
)

// sourced is a source for one book, as at one start of the program.
func sourced(t *testing.T, file string, k *kept) (*Source, *Book) {
	t.Helper()
	where := Context{Root: t.TempDir()}
	b, err := NewBook(where, ModeRules, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := NewSource(file, k)
	s.Serve("c", b, where)
	return s, b
}

func save(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func verdict(b *Book, cmd string) Verdict { return b.Explain(command(cmd)).Verdict }

func TestTheFirstRuleFileIsInForceAtTheStart(t *testing.T) {
	file, k := filepath.Join(t.TempDir(), "rules.toml"), &kept{}
	save(t, file, allowsTrue)
	s, b := sourced(t, file, k)
	if err := s.Load(false); err != nil {
		t.Fatal(err)
	}
	if verdict(b, "true") != Allow || string(k.text) != allowsTrue || s.State().Hash == "" || s.State().Pending != nil {
		t.Errorf("true is %s, kept %q, %+v", verdict(b, "true"), k.text, s.State())
	}
}

func TestAChangeFromOutsideWaitsForTheOperator(t *testing.T) {
	file, k := filepath.Join(t.TempDir(), "rules.toml"), &kept{}
	s, b := sourced(t, file, k)
	if err := s.Load(false); err != nil { // no file: that is what was in force
		t.Fatal(err)
	}
	save(t, file, allowsTrue)
	if !s.Look() || s.Look() {
		t.Error("a change is told once")
	}
	if verdict(b, "true") != Ask {
		t.Error("a file that nobody saw is in force")
	}

	later, b := sourced(t, file, k) // the program starts again
	if err := later.Load(false); err != nil {
		t.Fatal(err)
	}
	p := later.State().Pending
	if verdict(b, "true") != Ask || p == nil || !strings.Contains(p.Diff, `+allow = ["true"]`) {
		t.Fatalf("true is %s, pending %+v", verdict(b, "true"), p)
	}
	save(t, file, allowsTrue+allowsFalse)
	if err := later.Accept(p.Hash); !errors.Is(err, ErrOtherRules) || verdict(b, "true") != Ask {
		t.Errorf("accepting what was shown, not what is there: %v", err)
	}
	for _, n := range []int{0, CodeLength - 1} {
		if err := later.Accept(later.State().Pending.Hash[:n]); err == nil {
			t.Errorf("%d digits of the hash were accepted", n)
		}
	}
	if err := later.Accept(later.State().Pending.Hash[:CodeLength]); err != nil {
		t.Fatal(err)
	}
	if verdict(b, "true") != Allow || verdict(b, "false") != Allow || later.State().Pending != nil || later.Look() {
		t.Errorf("after it was accepted: %+v", later.State())
	}
}

func TestAFileThatCannotBeUsedLeavesTheLastGoodOneInForce(t *testing.T) {
	for name, text := range map[string]string{"not TOML": "[[rule", "its own test fails": failsItself} {
		t.Run(name, func(t *testing.T) {
			file, k := filepath.Join(t.TempDir(), "rules.toml"), &kept{}
			save(t, file, allowsTrue)
			s, b := sourced(t, file, k)
			if err := s.Load(false); err != nil {
				t.Fatal(err)
			}
			save(t, file, text)
			if !s.Look() || s.Look() || !strings.Contains(s.State().Broken, file) {
				t.Errorf("broken: %q", s.State().Broken)
			}
			if verdict(b, "true") != Allow {
				t.Error("the last good rules went")
			}
			s, b = sourced(t, file, k)
			if err := s.Load(false); err == nil || verdict(b, "true") != Allow {
				t.Errorf("at the next start: %v, true is %s", err, verdict(b, "true"))
			}
			save(t, file, allowsTrue)
			if s.Look() || s.State().Broken != "" {
				t.Error("mended, and still broken")
			}
		})
	}
}

func TestAFileNamedForThisStartIsTrusted(t *testing.T) {
	file, k := filepath.Join(t.TempDir(), "rules.toml"), &kept{text: []byte(allowsFalse)}
	save(t, file, allowsTrue)
	s, b := sourced(t, file, k)
	if err := s.Load(true); err != nil || verdict(b, "true") != Allow || verdict(b, "false") != Ask {
		t.Errorf("%v, true is %s, false is %s", err, verdict(b, "true"), verdict(b, "false"))
	}
}

func TestARuleIsAddedOnlyIfItAllowsTheItem(t *testing.T) {
	file, k := filepath.Join(t.TempDir(), "rules.toml"), &kept{}
	save(t, file, allowsTrue)
	s, b := sourced(t, file, k)
	if err := s.Load(false); err != nil {
		t.Fatal(err)
	}
	item := command("false")
	item.Connection = "c"
	if err := s.Add(item, "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"echo\"]\n"); err == nil || !strings.Contains(err.Error(), "does not allow") {
		t.Errorf("another command's rule: %v", err)
	}
	if err := s.Add(item, "[[rule"); err == nil {
		t.Error("what is not TOML was added")
	}
	k.err = errors.New("no space left on device")
	if err := s.Add(item, allowsFalse); err == nil || verdict(b, "false") != Ask {
		t.Errorf("not kept, and in force: %v", err)
	}
	k.err = nil
	save(t, file, allowsTrue)
	if why, err := s.Try(item, allowsFalse); err != nil || why.Verdict != Allow || verdict(b, "false") != Ask {
		t.Errorf("trying it: %v, %v", why.Verdict, err)
	}
	if err := s.Add(item, allowsFalse); err != nil || verdict(b, "false") != Allow || verdict(b, "true") != Allow {
		t.Fatalf("%v", err)
	}
	text, _ := os.ReadFile(file)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || string(text) != allowsTrue+"\n"+allowsFalse || s.Look() {
		t.Errorf("the file is %q", text)
	}
	save(t, file, "")
	if err := s.Add(item, allowsFalse); err == nil || !strings.Contains(err.Error(), "outside") {
		t.Errorf("over a change that nobody saw: %v", err)
	}
}

func TestAValueOfTheWrongTypeIsNamedWithItsLine(t *testing.T) {
	_, err := Parse("r.toml", []byte("[[rule]]\nname = 1\n"), Context{Root: t.TempDir()})
	var bad *Invalid
	if !errors.As(err, &bad) || bad.Line != 2 || !strings.HasPrefix(bad.What, "rule.name: ") {
		t.Errorf("%v", err)
	}
}
