package assets

import "embed"

//go:embed rules/*.toml
var rules embed.FS

// Rules returns a rule file that we ship, by its name without .toml: "starter"
// or "developer". Both are TOML, and can be joined into one file.
func Rules(name string) ([]byte, error) { return rules.ReadFile("rules/" + name + ".toml") }
