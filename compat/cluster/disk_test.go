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

// fill leaves no room on the disk of a member, until empty is called.
func (m *member) fill() error {
	m.filled = true
	f, err := os.Create(m.filler())
	if err != nil {
		return err
	}
	defer f.Close()
	piece := make([]byte, 1<<20)
	for range fillerSize >> 20 {
		if _, err := f.Write(piece); err != nil {
			break // the disk is full
		}
	}
	return nil
}

func (m *member) empty() { _ = os.Remove(m.filler()) } // there may be none

func (m *member) filler() string { return filepath.Join(m.dir, "filler") }
