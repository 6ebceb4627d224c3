// Package quiet keeps the standard log silent while packages initialize. Fyne
// complains there, on stderr, about locales such as C.UTF-8, for every command
// and before main could do anything about it. Packages initialize in the order
// of their import paths where nothing else orders them, so this one comes before
// fyne.io; main gives the log its output back.
package quiet

import (
	"io"
	"log"
)

func init() { log.SetOutput(io.Discard) }
