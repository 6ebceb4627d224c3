//go:build !linux

package main

import (
	"os"
	"os/exec"

	"countersign/app/config"
)

// Elsewhere than on Linux taking the variables out of the environment has to do.

func startAnew(config.Credentials) error { return nil }

// startOver starts the same program beside this process, which is ending, with the
// same command line and credentials.
func startOver(given config.Credentials) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), config.EnvironmentKeyVar+"="+given.EnvironmentKey, config.APIKeyVar+"="+given.APIKey)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Start()
}

func handedSecrets() (config.Credentials, bool, error) { return config.Credentials{}, false, nil }

func shield() error { return nil }
