package main

import (
	"os"

	"countersign/app/config"
)

// secretVars are the variables that carry credentials into the process.
var secretVars = []string{config.EnvironmentKeyVar, config.APIKeyVar}

// takeSecrets takes the credentials out of the process environment and returns
// them. On Linux os.Unsetenv is not enough: the environment that a process was
// started with stays readable in /proc for as long as it runs. There the program
// starts itself anew without them, once, and hands them on through a pipe.
func takeSecrets() (config.Credentials, error) {
	if given, handed, err := handedSecrets(); handed || err != nil {
		return given, err
	}
	given := config.Credentials{
		EnvironmentKey: os.Getenv(config.EnvironmentKeyVar),
		APIKey:         os.Getenv(config.APIKeyVar),
	}
	for _, name := range secretVars {
		os.Unsetenv(name)
	}
	if given == (config.Credentials{}) {
		return given, nil
	}
	return given, startAnew(given)
}
