// Package assets embeds what the program carries with it: its icons.
package assets

import (
	"embed"
	"fmt"
)

//go:generate go run ./gen

//go:embed *.png
var files embed.FS

// TrayState names a picture for the tray. The pictures differ in shape, so that
// they can be told apart without their colours.
type TrayState string

// The tray's states, in the order in which one hides the other: the last wins.
const (
	Idle         TrayState = "idle"
	Running      TrayState = "running"
	Waiting      TrayState = "waiting"
	Paused       TrayState = "paused"
	Disconnected TrayState = "disconnected"
	Attention    TrayState = "attention"
)

// TrayStates lists every state there is a picture for.
func TrayStates() []TrayState {
	return []TrayState{Idle, Running, Waiting, Paused, Disconnected, Attention}
}

// Icon returns the application's icon, a PNG of 512 pixels.
func Icon() []byte { return read("Icon.png") }

// Tray returns the picture for a state, a PNG of 64 pixels. Trays draw PNG
// only: vector and themed pictures come out blank there.
func Tray(s TrayState) []byte { return read(fmt.Sprintf("tray-%s.png", s)) }

// read returns a file that is known to be embedded; a missing one is a mistake
// in the program that no caller could mend.
func read(name string) []byte {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return data
}
