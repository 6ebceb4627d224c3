package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"countersign/app/config"

	"golang.org/x/sys/unix"
)

// handedOver names the variable that tells the started-anew program which
// descriptor its credentials come through.
const handedOver = "COUNTERSIGN_SECRETS_FD"

// startAnew replaces this process with the same program, whose environment has
// no credentials. It returns only when that cannot be done.
func startAnew(given config.Credentials) error {
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("take the credentials out of the environment: %w", err)
	}
	// The pipe holds far more than the keys, so this does not wait for a reader.
	text, err := json.Marshal([]string{given.EnvironmentKey, given.APIKey})
	if err != nil {
		return err
	}
	if len(text) > 16<<10 {
		return fmt.Errorf("%s and %s are too long to be keys", config.EnvironmentKeyVar, config.APIKeyVar)
	}
	if _, err := write.Write(text); err != nil {
		return fmt.Errorf("take the credentials out of the environment: %w", err)
	}
	write.Close()
	fd, err := unix.FcntlInt(read.Fd(), unix.F_DUPFD, 3) // a descriptor that survives exec
	if err != nil {
		return fmt.Errorf("take the credentials out of the environment: %w", err)
	}
	env := append(os.Environ(), fmt.Sprintf("%s=%d", handedOver, fd))
	err = syscall.Exec("/proc/self/exe", os.Args, env)
	return fmt.Errorf("take the credentials out of the environment: start anew: %w", err)
}

// startOver replaces this process with the same program, which begins anew with the
// same command line and credentials. It returns only when that cannot be done.
func startOver(given config.Credentials) error {
	return fmt.Errorf("start over: %w", startAnew(given))
}

// handedSecrets reads the credentials that startAnew handed on, if it did.
func handedSecrets() (given config.Credentials, handed bool, err error) {
	value, handed := os.LookupEnv(handedOver)
	if !handed {
		return given, false, nil
	}
	os.Unsetenv(handedOver)
	fd, err := strconv.Atoi(value)
	if err != nil || fd < 3 {
		return given, true, fmt.Errorf("%s = %s is set from outside; unset it", handedOver, value)
	}
	pipe := os.NewFile(uintptr(fd), "credentials")
	defer pipe.Close()
	var keys []string
	text, err := io.ReadAll(io.LimitReader(pipe, 64<<10))
	if err != nil || json.Unmarshal(text, &keys) != nil || len(keys) != 2 {
		return given, true, fmt.Errorf("%s = %s is set from outside; unset it", handedOver, value)
	}
	return config.Credentials{EnvironmentKey: keys[0], APIKey: keys[1]}, true, nil
}

// shield keeps other processes of this user from reading the memory of this
// one, where the credentials are.
func shield() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
