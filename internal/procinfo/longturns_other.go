//go:build !linux

package procinfo

// TakeLongTurns does nothing: this system has no turns of different lengths.
func TakeLongTurns() {}
