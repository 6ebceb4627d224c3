package main

import (
	"os"
	"strings"
	"testing"

	"countersign/app/config"
)

func TestTheReadmeNamesEveryCommandAndFlag(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(readme)
	parser, err := newParser(new(commandLine), config.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range parser.Model.Leaves(true) {
		if name := command.Name; !strings.Contains(text, "countersign "+name) && !strings.Contains(text, command.FullPath()) && !strings.Contains(text, "`"+name+" ") {
			t.Errorf("the command %s is not in it", command.FullPath())
		}
		for _, flags := range command.AllFlags(true) {
			for _, f := range flags {
				if f.Name != "help" && !strings.Contains(text, "--"+f.Name) {
					t.Errorf("the flag --%s of %s is not in it", f.Name, command.FullPath())
				}
			}
		}
	}
}

func TestTheReadmesConfigurationIsAValidOne(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(readme), "```toml\n")
	example, _, found := strings.Cut(after, "```")
	c, err := config.Parse("README.md", []byte(example))
	if !found || err != nil || len(c.Connections) != 1 {
		t.Errorf("got %+v, %v", c, err)
	}
}
