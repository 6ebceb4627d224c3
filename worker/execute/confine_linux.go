package execute

import (
	"fmt"

	"countersign/worker/execute/keep"
)

// ConfinementLevel says, for people, what confined commands are kept from on
// this machine. An error says why none can be confined: then none runs.
func ConfinementLevel() (string, error) {
	abi, err := keep.ABI()
	if err != nil {
		return "", err
	}
	level := fmt.Sprintf("Landlock version %d: commands write only in the work directory, a temporary directory of their own and the listed places", abi)
	if abi < keep.ScopeABI {
		return level + "; this kernel does not keep them from ending other programs of this user", nil
	}
	return level + ", and cannot end programs outside", nil
}
