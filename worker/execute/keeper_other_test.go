//go:build unix && !linux

package execute

import "testing"

func playRole() {}

func testKeeper(testing.TB) *Keeper { return nil }
