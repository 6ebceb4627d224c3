//go:build !linux

package execute

import "errors"

// ConfinementLevel says, for people, what confined commands are kept from on
// this machine. An error says why none can be confined: then none runs.
func ConfinementLevel() (string, error) {
	return "", errors.New("commands can be confined on Linux only")
}
