//go:build linux

// Command countersign-keeper is the helper that Countersign runs each command
// under: package keep as a program of its own, which starts faster than
// Countersign does again. It is built without cgo and installed beside it.
package main

import (
	"os"

	"countersign/worker/execute/keep"
)

func main() { os.Exit(keep.Main()) }
