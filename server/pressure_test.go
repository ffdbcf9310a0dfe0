package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The reason of a refusal for want of space names the disk, its free bytes, and the bytes that are
// kept free. Where the disk is too small for -min-free, it says that less is kept than -min-free
// asks for.
func TestRefusalsTellTheFiguresOfTheDisk(t *testing.T) {
	now := Pressure{Disk: true, Place: t.TempDir(), Free: 3 * mib, Least: 6 * mib, Asked: 64 * mib, Total: 96 * mib}
	text := now.alarms(LimitsConfig{}, "")[0].text
	require.Contains(t, text, "3 MiB are free in "+now.Place+" (mounted on "+mount(now.Place)+")")
	require.Contains(t, text, "6 MiB are kept free (-min-free asks for 64 MiB, but of this disk no more than a sixteenth is kept, and it has 96 MiB)")

	now.Least, now.Needed = 64*mib, 2*mib
	text = now.alarms(LimitsConfig{}, "")[0].text
	require.Contains(t, text, "64 MiB are kept free (-min-free), and 2 MiB for what database files are still to take from memory")
}
