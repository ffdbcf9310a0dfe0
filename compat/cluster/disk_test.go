package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

const (
	diskBytes  = 400 << 20
	fillerSize = 500 << 20 // more than the disk has
)

// newDisk makes a directory, in long runs with a small disk of its own. Where that is not allowed
// it is a directory like others, which is never full and never hangs.
func newDisk(t *testing.T) (dir string, own bool) {
	t.Helper()
	dir = t.TempDir()
	if _, long := os.LookupEnv("GOTYCOON_CLUSTER"); !long {
		return dir, false
	}
	return dir, mountImage(t, dir)
}

// fill leaves no room on the disk of a member, until free is called.
func (m *member) fill() (free func(), err error) {
	path := filepath.Join(m.dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	piece := make([]byte, 1<<20)
	for range fillerSize >> 20 {
		if _, err := f.Write(piece); err != nil {
			break // the disk is full
		}
	}
	return func() { _ = os.Remove(path) }, nil
}
