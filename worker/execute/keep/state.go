//go:build linux

package keep

import "golang.org/x/sys/unix"

// state is what a command gets from its helper beside what it is handed, as far
// as another process of the same user could have changed it: a command can renice
// its helper, or limit it.
type state struct {
	limits    [unix.RLIMIT_RTTIME + 1]unix.Rlimit // all there are
	scheduled unix.SchedAttr                      // policy, niceness, priority
	cpus      unix.CPUSet
	io        uintptr // priority
	group     string  // control groups
	oom       string  // what the kernel's memory killer adds
}

// kernelFiles say what no system call does. They stay open: each read has them as
// they are then.
type kernelFiles struct{ group, oom int }

func openKernelFiles() kernelFiles {
	open := func(path string) int {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1
		}
		return fd
	}
	return kernelFiles{group: open("/proc/self/cgroup"), oom: open("/proc/self/oom_score_adj")}
}

// stateNow is the state of the thread that starts commands.
func (k kernelFiles) stateNow() (s state) {
	for which := range s.limits {
		_ = unix.Prlimit(0, which, nil, &s.limits[which])
	}
	if a, err := unix.SchedGetAttr(0, 0); err == nil {
		s.scheduled = unix.SchedAttr{Policy: a.Policy, Flags: a.Flags, Nice: a.Nice, Priority: a.Priority,
			Util_min: a.Util_min, Util_max: a.Util_max} // the kernel itself changes the others
	}
	_ = unix.SchedGetaffinity(0, &s.cpus)
	const process = 1
	s.io, _, _ = unix.Syscall(unix.SYS_IOPRIO_GET, process, 0, 0)
	s.group, s.oom = content(k.group), content(k.oom)
	return s
}

// content is the beginning of a file, read without the runtime's help.
func content(fd int) string {
	var buf [1024]byte
	n, err := unix.Pread(fd, buf[:], 0)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}
