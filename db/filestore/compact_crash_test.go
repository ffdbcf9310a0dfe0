package filestore

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"gotycoon/ulog/update"
)

// watched looks, between the steps of a compaction, at what a crash or a power cut would leave.
type watched struct {
	*Store
	t      *testing.T
	path   string
	states map[update.Stamp]map[string]string // records by stamp
	now    map[string]string
	cut    update.Stamp // the log may have been cut up to here
	looks  int
}

// watch returns a store whose old file keeps a second name, which is what a directory that was not
// synced may still lead to.
func watch(t *testing.T) *watched {
	s, path := quiet(t, Options{Limit: 1 << 30})
	w := &watched{Store: s, t: t, path: path, states: map[update.Stamp]map[string]string{}}
	s.Attach(nil, func(m Meta) { w.cut = m.Stamp })
	w.now = fillLoosely(t, s)
	w.states[s.Meta().Stamp] = maps.Clone(w.now)
	require.NoError(t, os.Link(path, path+".old"))
	return w
}

func (w *watched) set(key, value string) {
	at := w.view.Load().active().stamp + 1
	w.Apply(at, []update.Update{set(key, value)})
	w.now[key] = value
	w.states[at] = maps.Clone(w.now)
}

// look opens copies of the files that may have the name after a crash.
func (w *watched) look(paths ...string) {
	w.looks++
	for _, path := range paths {
		b, err := os.ReadFile(path)
		require.NoError(w.t, err)
		copied := filepath.Join(w.t.TempDir(), "a.kct")
		require.NoError(w.t, os.WriteFile(copied, b, 0o644))
		s, err := Open(copied, Options{ReadOnly: true})
		require.NoError(w.t, err)
		require.GreaterOrEqual(w.t, s.Meta().Stamp, w.cut, "%s lacks what the log has no more", path)
		requireEqual(w.t, w.states[s.Meta().Stamp], s)
		require.NoError(w.t, s.Abandon())
	}
}

func TestCompactIsSafeBetweenAllSteps(t *testing.T) {
	w := watch(t)
	seen := map[string]int{}
	w.compactor.disk.step = func(name string) error {
		seen[name]++
		switch name {
		case "piece":
			w.look(w.path)
			w.set(fmt.Sprint("new", w.looks), "1")
			if w.looks < 5 {
				return w.Checkpoint()
			}
		case "renamed":
			w.look(w.path, w.path+".old")
		default:
			w.look(w.path)
		}
		return nil
	}
	require.NoError(t, compact(w.Store))
	w.look(w.path)
	requireEqual(t, w.now, w.Store)
	for _, step := range []string{"piece", "last piece", "synced", "renamed"} {
		require.NotZero(t, seen[step], step)
	}
	require.NoError(t, w.Checkpoint())
	w.look(w.path)
}

var errDisk = errors.New("the disk says no")

// A rename or a sync fails, before or after it took place.
func TestCompactWithAFailingDisk(t *testing.T) {
	for name, c := range map[string]struct {
		fail  func(d *disk)
		swaps bool // the copy has the name in the end
	}{
		"rename":      {func(d *disk) { d.rename = func(string, string) error { return errDisk } }, false},
		"late rename": {func(d *disk) { d.rename = func(a, b string) error { return errors.Join(os.Rename(a, b), errDisk) } }, true},
		"sync": {func(d *disk) {
			d.sync = func(*bolt.DB) error { return errDisk }
		}, false},
		"write": {func(d *disk) {
			d.step = func(name string) error {
				if name == "piece" {
					return errDisk
				}
				return nil
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(t)
			before, whole := w.FileSize(), w.compactor.disk
			w.set("before", "1")
			c.fail(&w.compactor.disk)
			if err := compact(w.Store); !c.swaps {
				require.ErrorIs(t, err, errDisk)
				require.ErrorIs(t, w.CompactionStats().Err, errDisk)
			} else {
				require.NoError(t, err)
			}
			require.NoFileExists(t, w.path+copySuffix)
			require.Equal(t, c.swaps, w.FileSize() < before)
			w.set("after", "1")
			require.NoError(t, w.Checkpoint())
			w.look(w.path)
			requireEqual(t, w.now, w.Store)
			w.compactor.disk = whole
			require.NoError(t, compact(w.Store))
			requireEqual(t, w.now, w.Store)
			require.NoError(t, w.Merge())
			requireEqual(t, w.now, w.Store)
			w.look(w.path)
		})
	}
}

// The directory cannot be synced: nothing is written to either file until it can.
func TestCompactWhoseDirectoryCannotBeSynced(t *testing.T) {
	w := watch(t)
	w.compactor.disk.syncDir = func(string) error { return errDisk }
	require.ErrorIs(t, compact(w.Store), errDisk)
	cut := w.cut
	w.set("after", "1")
	require.ErrorIs(t, w.Checkpoint(), errDisk)
	require.ErrorIs(t, w.Amend(func(*Meta) {}), errDisk)
	_, err := w.mergeOn(true)
	require.ErrorIs(t, err, errDisk)
	_, err = w.Compact(CompactOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !w.CompactionStats().Running }, 10*time.Second, time.Millisecond)
	require.ErrorIs(t, w.CompactionStats().Err, errDisk)
	requireEqual(t, w.now, w.Store)
	require.Equal(t, cut, w.cut)
	w.look(w.path, w.path+".old") // a power cut may leave either
	w.compactor.disk.syncDir = func(string) error { return nil }
	require.NoError(t, w.Checkpoint())
	requireEqual(t, w.now, w.Store)
	w.look(w.path)
	require.NoError(t, os.Remove(w.path+".old"))
	requireEqual(t, w.now, reopened(t, w.Store, w.path))
}

// The same, and the store is closed before it can.
func TestCloseWhileASwapIsNotSettled(t *testing.T) {
	w := watch(t)
	w.compactor.disk.syncDir = func(string) error { return errDisk }
	require.ErrorIs(t, compact(w.Store), errDisk)
	requireEqual(t, w.now, reopened(t, w.Store, w.path))
}

func TestCompactWithoutRoom(t *testing.T) {
	w := watch(t)
	w.compactor.disk.space = func(string) (total, free int64, err error) { return 1 << 40, 64 << 20, nil }
	c, err := w.Compact(CompactOptions{Fast: true, Keep: func() int64 { return 64 << 20 }})
	require.NoError(t, err)
	<-c.Done()
	require.ErrorContains(t, c.Err(), "64 MiB shall stay free")
	require.NoFileExists(t, w.path+copySuffix)
	w.look(w.path)
	require.NoError(t, compact(w.Store), "without a wish")
}
