package policy

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// letters are how spans are spelled in these tests.
var letters = map[Token]string{TokenProgram: "p", TokenOption: "o", TokenWord: "w", TokenString: "s", TokenOperator: "|",
	TokenRedirect: "r", TokenAssignment: "a", TokenExpansion: "$", TokenComment: "#", TokenBlank: " ", TokenUnparsed: "?"}

func TestHighlightTellsTheStructureOfACommand(t *testing.T) {
	for _, c := range []struct{ command, want string }{
		{"go test -v ./...",
			"pp wwww oo wwwww"},
		{"ls -la -- -x && rm - || true; a",
			"pp ooo oo ww || pp w || pppp| p"},
		{"'l''s' \"-l\" '-''a' \\-x 'a b'\"c\"",
			"pppppp oooo oooooo ooo ssssssss"},
		{"A=1 B=\"x y\" env -i C=2 cmd >out 2>&1 <in",
			"aaa aasssss ppp oo www www rrrr rrrr rrr"},
		{"echo $x ${y:-a b} $((1+x)) *.go ~/a",
			"pppp $$ $$$$$$$$$ $$$$$$$$ wwww www"},
		{"echo \"a $(id -u | wc) b\" `pwd`",
			"pppp sss$$pp oo | pp$sss $ppp$"},
		{"diff <(sort -u a) b",
			"pppp $$pppp oo w$ w"},
		{"ls # -la\nls",
			"pp ##### pp"},
		{"cat <<EOF >f\na $x\nEOF\nls",
			"ppp rrrrr rr ss$$ssss pp"},
		{"if true; then f() { g; }; fi",
			"|| pppp| |||| w|| | p| || ||"},
		{"for i in a b; do echo $i; done",
			"||| w || w w| || pppp $$| ||||"},
		{"export A=b C",
			"pppppp www w"}, // POSIX: a command like others
		{"[[ -f x ]]",
			"pp oo w ww"}, // POSIX: a program named [[
		{"ls \\\n -l",
			"pp    oo"},
		{"(cd a; ls)|sort&",
			"|pp w| pp||pppp|"},
		{"a=(1 2); echo ${a[0]}",
			"aaaaaaa| pppp $$$$$$$"},
		{"\necho\ta\n",
			" pppp w "},
		{"echo 'open", "??????????"},
		{"a\rb", "???"},
		{"", ""},
	} {
		var b strings.Builder
		for _, s := range Highlight(c.command) {
			b.WriteString(strings.Repeat(letters[s.Kind], s.End-s.Start))
		}
		if b.String() != c.want {
			t.Errorf("%q\n got %s\nwant %s", c.command, b.String(), c.want)
		}
	}
}

func checkCover(t *testing.T, c string) {
	t.Helper()
	at := 0
	for i, s := range Highlight(c) {
		if s.Start != at || s.End <= s.Start || s.End > len(c) || letters[s.Kind] == "" {
			t.Fatalf("%q: span %d is %+v, after %d bytes", c, i, s, at)
		}
		if utf8.ValidString(c) && !utf8.ValidString(c[s.Start:s.End]) {
			t.Fatalf("%q: span %d cuts a character in two", c, i)
		}
		at = s.End
	}
	if at != len(c) {
		t.Fatalf("%q is covered up to %d", c, at)
	}
}

func TestHighlightCoversEveryCommandThatIsKnown(t *testing.T) {
	for _, tr := range traps {
		for _, c := range tr.commands {
			checkCover(t, c)
		}
	}
	for _, c := range corpus(t) {
		checkCover(t, c.command)
	}
	deep := strings.Repeat("$(", 900) + strings.Repeat(")", 900)
	for _, c := range []string{strings.Repeat("a && ", 10_000) + "a", strings.Repeat("a | ", 15_000) + "a", "echo " + deep, strings.Repeat("(", 60_000),
		"echo " + strings.Repeat("${a:-", 1000) + strings.Repeat("}", 1000), strings.Repeat("<<a ", 10_000), strings.Repeat("a\n", 200_000), strings.Repeat("((", 900) + "1" + strings.Repeat("))", 900)} {
		checkCover(t, c)
	}
}

func FuzzHighlight(f *testing.F) {
	for _, tr := range traps {
		for _, c := range tr.commands {
			if len(c) < 1000 {
				f.Add(c)
			}
		}
	}
	for _, c := range []string{"cat <<-'E' <<F\n\ta\n\tE\n$(b)\nF\n", "a=(b [c]=d)", "`a \\`b\\` c`", "case x in (a|b) c;; esac", "$'a' $\"b\" é", "select x in a; do b; done", "${a/b/$(c)}"} {
		f.Add(c)
	}
	f.Fuzz(checkCover)
}

func BenchmarkHighlight(b *testing.B) {
	for name, c := range map[string]string{"short": "go test -race ./... 2>&1 | tail -20", "60 KB": strings.Repeat("echo \"a $b\" > c; ", 3500)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(c)))
			for b.Loop() {
				Highlight(c)
			}
		})
	}
}
