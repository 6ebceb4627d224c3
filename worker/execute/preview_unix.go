//go:build unix

package execute

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// linkCount is how many names a file has; 0 if that is not known.
func linkCount(info fs.FileInfo) int {
	if info == nil {
		return 0
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Nlink)
	}
	return 0
}

// onDisk tells one file from another, whatever is in it; "" if that is not known.
func onDisk(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("inode %d on device %d", s.Ino, s.Dev)
	}
	return ""
}

// mayMakeIn fails where no file can be made in a directory, as far as that can be
// told without making one.
func mayMakeIn(root *os.Root, dir string) error {
	d, err := root.Open(dir)
	if err != nil {
		return nil // it cannot be read, which says nothing about writing
	}
	defer d.Close()
	err = unix.Faccessat(int(d.Fd()), ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	if err == unix.EACCES || err == unix.EPERM || err == unix.EROFS {
		return err
	}
	return nil
}
