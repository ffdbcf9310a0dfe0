package db

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/record"
	"gotycoon/internal/vfs"
)

// mortalFS ends a process at its nth change of the file system: neither that change nor any later
// one happens.
type mortalFS struct {
	vfs.FS
	mu   sync.Mutex
	left int
	died bool
}

var errDead = errors.New("the process was killed")

func (m *mortalFS) step() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left == 0 {
		m.died = true
		return errDead
	}
	m.left--
	return nil
}

func (m *mortalFS) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	if flag&os.O_CREATE != 0 {
		if _, err := m.FS.Stat(name); errors.Is(err, os.ErrNotExist) {
			if err := m.step(); err != nil {
				return nil, err
			}
		}
	}
	f, err := m.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &mortalFile{f, m}, nil
}

func (m *mortalFS) MkdirAll(name string, perm os.FileMode) error {
	if err := m.step(); err != nil {
		return err
	}
	return m.FS.MkdirAll(name, perm)
}

func (m *mortalFS) Rename(from, to string) error {
	if err := m.step(); err != nil {
		return err
	}
	return m.FS.Rename(from, to)
}

func (m *mortalFS) Remove(name string) error {
	if err := m.step(); err != nil {
		return err
	}
	return m.FS.Remove(name)
}

func (m *mortalFS) Lock(f vfs.File, wait time.Duration) error {
	return m.FS.Lock(f.(*mortalFile).File, wait)
}

type mortalFile struct {
	vfs.File
	fs *mortalFS
}

func (f *mortalFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.fs.step(); err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, off)
}

func (f *mortalFile) Truncate(size int64) error {
	if err := f.fs.step(); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// life is one run of a process: with a shared log of that name, or none, and to its end or until it
// is killed.
type life struct {
	log   string
	clean bool
}

// A process begins to use a log, or another one than before, and dies at each of the steps that
// this takes. The next one must start without a word, and have everything that was acknowledged.
func TestDeathAtEveryStepBetweenLogs(t *testing.T) {
	private, shared := life{}, life{log: "ulog"}
	closed := func(l life) life { l.clean = true; return l }
	for name, lives := range map[string][]life{ // the last but one dies
		"from nothing to private to shared": {closed(private), shared},
		"killed, from private to shared":    {private, closed(shared), shared},
		"closed, from shared to private":    {closed(shared), closed(private), private},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 0; dieAt(t, lives, n); n++ {
			}
		})
	}
}

// dieAt leads a process through its lives, with its death at step n of the last but one. It reports
// whether there was such a step.
func dieAt(t *testing.T, lives []life, n int) (died bool) {
	dir, acked := t.TempDir(), map[string]string{}
	for i, l := range lives {
		fs := &mortalFS{FS: vfs.OS{}, left: -1}
		if i == len(lives)-2 {
			fs.left = n
		}
		c := l.live(t, dir, i, fs, acked)
		dir = image(t, dir)
		if c != nil {
			c.stopBackground()
			abandon(c)
		}
		died = died || fs.died
	}
	return died
}

// live opens, checks, and changes a database, and returns what a process that was killed leaves
// open.
func (l life) live(t *testing.T, dir string, i int, fs *mortalFS, acked map[string]string) *Catalog {
	var said bytes.Buffer
	o := Options{FS: fs, LogLimit: 300, SID: 1, Logger: slog.New(slog.NewTextHandler(&said, nil))}
	if l.log != "" {
		o.LogDir = filepath.Join(dir, l.log)
	}
	c, err := Open([]string{filepath.Join(dir, "a.kct")}, o)
	if fs.died {
		return c
	}
	require.NoError(t, err, "life %d", i)
	require.Empty(t, said.String(), "life %d", i)
	got := contents(t, c.DB(0))
	for key, value := range acked {
		require.Equal(t, value, got[key], "life %d, key %s", i, key)
	}
	for j := range 6 {
		key, value := fmt.Sprint(i, j), strings.Repeat("v", 100)
		if c.DB(0).Set(nil, []byte(key), []byte(value), record.Never) == nil {
			acked[key] = value
		}
		if j == 3 {
			_ = c.DB(0).file.Checkpoint() // may be what the process dies of
		}
	}
	if l.clean && !fs.died && c.Close() == nil {
		return nil
	}
	return c
}
