// Command recorder stands in for every program that a differential test names:
// it writes to descriptor 3 what it was started as, with which words, where, and
// what its first three descriptors are. As "fails" it fails.
package main

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

func main() {
	dir, _ := os.Getwd()
	fields := []string{dir, link(0), link(1), link(2), filepath.Base(os.Args[0])}
	var line []byte
	for _, f := range append(fields, os.Args[1:]...) {
		line = append(strconv.AppendQuote(line, f), ' ')
	}
	line[len(line)-1] = '\n'
	if n, err := syscall.Write(3, line); err != nil || n != len(line) {
		os.Exit(99)
	}
	if filepath.Base(os.Args[0]) == "fails" {
		os.Exit(1)
	}
}

// link names a descriptor; pipes all have one name.
func link(fd int) string {
	to, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return "closed"
	}
	if len(to) > 5 && to[:5] == "pipe:" {
		return "pipe"
	}
	return to
}
