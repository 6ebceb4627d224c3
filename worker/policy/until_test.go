package policy

import (
	"strings"
	"testing"
	"time"
)

func TestAnUntilThatCannotBeUsedHidesNoOtherMistake(t *testing.T) {
	_, err := Parse("r.toml", []byte("[[rule]]\nname = \"x\"\nkind = \"run\"\nallow = [\"ls\"]\nuntil = \"soon\"\n[[rule]]\nkind = \"exec\"\nallow = [\"*\"]\n"), testContext(t))
	for _, want := range []string{"r.toml:3: kind is", "r.toml:5: until is", "r.toml:6: a rule needs a name", "r.toml:8: allow"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

// A date is the beginning of that day, here.
func TestUntilIsADateAndTimeOrADate(t *testing.T) {
	day := time.Date(2030, 12, 31, 0, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"2030-12-31T18:00:00Z": time.Date(2030, 12, 31, 18, 0, 0, 0, time.UTC), "2030-12-31 18:00:00+01:00": time.Date(2030, 12, 31, 17, 0, 0, 0, time.UTC),
		"2030-12-31T18:00:00": day.Add(18 * time.Hour), "2030-12-31": day, `"2030-12-31T18:00:00Z"`: time.Date(2030, 12, 31, 18, 0, 0, 0, time.UTC),
	} {
		r := rulesOf(t, testContext(t), "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"ls\"]\nuntil = "+text+"\n")
		if got := r.rules[0].until; !got.Equal(want) {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
}

func TestAnUntilThatIsNoneSaysWhatIsExpected(t *testing.T) {
	for text, want := range map[string]string{
		`"soon"`: `until is "soon", expected a date and time, such as 2026-12-31T18:00:00Z, or a date; it is written without quotes`,
		"5":      "until is 5, expected a date", "[2030-12-31]": "until is a list, expected a date", "07:30:00": "until is a time without a date, expected a date",
		"{ day = 2030-12-31 }": "until is a table, expected a date",
	} {
		_, err := Parse("r.toml", []byte("[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"ls\"]\nuntil = "+text+"\n"), testContext(t))
		if err == nil || !strings.HasPrefix(err.Error(), "r.toml:5: "+want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
