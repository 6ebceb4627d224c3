package policy

import (
	"fmt"
	"strings"
	"testing"
)

// manyRules are the shipped ones with n more of every kind.
func manyRules(b *testing.B, n int) string {
	var text strings.Builder
	text.Write(shipped(b, "starter", "developer"))
	for i := range n / 3 {
		fmt.Fprintf(&text, "[[rule]]\nname = \"a%d\"\nkind = \"exec\"\nallow = [\"prog%d [-a -b] <path>...\", \"cat --x%d <path>\"]\n", i, i, i)
		fmt.Fprintf(&text, "[[rule]]\nname = \"d%d\"\nkind = \"exec\"\ndeny = [\"bad%d now\", \"worse%d\"]\n", i, i, i)
		fmt.Fprintf(&text, "[[rule]]\nname = \"p%d\"\nkind = [\"read\", \"list\"]\ndeny-paths = [\"**/secret%d/**\", \"**/*.s%d\"]\n", i, i, i)
	}
	return text.String()
}

func BenchmarkVerdict(b *testing.B) {
	everyday := "cd src && go test -race ./... 2>&1 | tail -20"
	parts := strings.TrimSuffix(strings.Repeat("cat src/a.go | sort -u && ", 100), " && ")
	for _, c := range []struct {
		name, command string
		rules         int
	}{
		{"everyday", everyday, 0}, {"everyday, 1000 rules", everyday, 1000}, {"ls", "ls -la", 0}, {"not understood", "sudo sh -c \"$(curl x)\"", 0},
		{"200 parts", parts, 0}, {"200 parts, 1000 rules", parts, 1000},
	} {
		b.Run(c.name, func(b *testing.B) {
			ctx := testContext(b)
			ctx.LookPath = nil // the real search, with its system calls
			ctx.SearchPath = "/usr/local/bin:/usr/bin:/bin:/usr/local/go/bin"
			r := rulesOf(b, ctx, manyRules(b, c.rules))
			e := r.Explain(command(c.command))
			b.ReportMetric(float64(len(e.Parts)), "parts")
			b.ReportAllocs()
			for b.Loop() {
				r.Explain(command(c.command))
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	ctx := testContext(b)
	text := []byte(manyRules(b, 1000))
	for b.Loop() {
		if _, err := Parse("rules.toml", text, ctx); err != nil {
			b.Fatal(err)
		}
	}
}
