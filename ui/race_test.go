//go:build race

package ui

func init() { largeText = 1 << 20 }
