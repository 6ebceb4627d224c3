package execute

import (
	"fmt"
	"os/exec"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// job is a started command with all that it started: Windows keeps them together
// and ends them when the last handle of the job is closed, so also when this
// process is killed.
type job struct {
	cmd *exec.Cmd

	mu     sync.Mutex
	handle windows.Handle
	closed bool
}

// newJob makes an empty job that ends with its handle.
func newJob() (windows.Handle, error) {
	handle, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err := windows.SetInformationJobObject(handle, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		windows.CloseHandle(handle)
		return 0, err
	}
	return handle, nil
}

func join(job windows.Handle, pid uint32) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, pid)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(process)
	return windows.AssignProcessToJobObject(job, process)
}

// resume lets a process that was started suspended run. It has one thread, whose
// handle os/exec has closed.
func resume(pid uint32) error {
	threads, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(threads)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(threads, &entry); err == nil; err = windows.Thread32Next(threads, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return err
		}
		defer windows.CloseHandle(thread)
		_, err = windows.ResumeThread(thread)
		return err
	}
	return fmt.Errorf("find its thread: %w", err)
}

func (j *job) wait() (status, error) { return waitFor(j.cmd) }

// ask ends all of it: Windows has no request that a program without a console
// window hears.
func (j *job) ask() { j.kill() }

func (j *job) kill() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.closed {
		_ = windows.TerminateJobObject(j.handle, 1)
	}
}

func (j *job) sweep(time.Duration) leftover {
	count := j.active()
	j.kill()
	alive := !gone(func() bool { return j.active() > 0 }, goneTime)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	windows.CloseHandle(j.handle)
	return leftover{some: count > 0, count: count, alive: alive}
}

// accounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type accounting struct {
	userTime, kernelTime, periodUserTime, periodKernelTime int64
	pageFaults, processes, active, terminated              uint32
}

// active is how many processes of the job run.
func (j *job) active() int {
	var a accounting
	err := windows.QueryInformationJobObject(j.handle, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&a)), uint32(unsafe.Sizeof(a)), nil)
	if err != nil {
		return 0
	}
	return int(a.active)
}
