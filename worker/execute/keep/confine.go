//go:build linux

package keep

import (
	"errors"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// oldestABI is the first version of Landlock that keeps a file from being
// truncated (Linux 6.2). With an older one a confined command could empty any
// file of the user.
const oldestABI = 3

// ABI returns the version of Landlock that this kernel offers, or why commands
// cannot be confined with it.
func ABI() (int, error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errno == unix.EOPNOTSUPP:
		return 0, errors.New("this kernel has Landlock, but it was not enabled when it booted")
	case errno != 0:
		return 0, errors.New("this kernel has no Landlock, or it is forbidden here: " + errno.Error())
	case v < oldestABI:
		return int(v), errors.New("the Landlock of this kernel is too old: version " + strconv.Itoa(int(v)) +
			", and " + strconv.Itoa(oldestABI) + " is needed (Linux 6.2)")
	}
	return int(v), nil
}

// ScopeABI is the first version that keeps processes outside from being
// signalled, the helper with them (Linux 6.12).
const ScopeABI = 6

// devices can be written to wherever a command is confined: what is written
// goes nowhere, or to the command's own terminal.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

const (
	writeToFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE

	// ioctlABI is the first version that keeps devices from being controlled.
	ioctlABI = 5

	// writeInDir leaves out devices: nobody may make them in a work directory.
	writeInDir = writeToFile | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
)

// confine confines this thread, and what it starts, for good: it can write in
// the given places alone and, where the kernel can see to it, signals no
// process outside. It gains no privileges by starting a program, either.
func confine(writable []string) error {
	abi, err := ABI()
	if err != nil {
		return err
	}
	rules := unix.LandlockRulesetAttr{Handled_access_fs: writeInDir |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK}
	device := uint64(writeToFile)
	if abi >= ioctlABI {
		rules.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
		device |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= ScopeABI {
		rules.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), unsafe.Sizeof(rules), 0)
	if errno != 0 {
		return os.NewSyscallError("landlock_create_ruleset", errno)
	}
	defer unix.Close(int(ruleset))
	for _, path := range devices {
		if err := allow(int(ruleset), path, device, device); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for _, path := range writable {
		if err := allow(int(ruleset), path, writeInDir, device); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("no_new_privs", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); errno != 0 {
		return os.NewSyscallError("landlock_restrict_self", errno)
	}
	return nil
}

// allow allows one place to be written to: all below a directory, or a file.
func allow(ruleset int, path string, inDir, inFile uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "make writable", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return &os.PathError{Op: "make writable", Path: path, Err: err}
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: inFile, Parent_fd: int32(fd)}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		rule.Allowed_access = inDir
	}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return &os.PathError{Op: "make writable", Path: path, Err: errno}
	}
	return nil
}
