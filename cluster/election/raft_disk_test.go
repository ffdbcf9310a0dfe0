package election

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"gotycoon/internal/vfs"
	"gotycoon/internal/vfs/crashfs"
	"gotycoon/internal/vfs/faultfs"
)

func openTestDisk(t *testing.T, fs vfs.FS, dir string) *disk {
	t.Helper()
	d, err := openDisk(fs, dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func testMembers() []Member {
	return identify("test", []Member{{Name: "a"}, {Name: "b"}, {Name: "c"}})
}

// saved saves an entry, with a vote in a term that is its index.
func saved(d *disk, index uint64) error {
	return d.save(&raft.Ready{
		HardState: &pb.HardState{Term: new(index), Vote: new(uint64(7)), Commit: new(index - 1)},
		Entries:   []*pb.Entry{{Index: new(index), Term: new(index), Data: fmt.Append(nil, "entry ", index)}},
		MustSync:  true,
	})
}

func TestDiskKeepsWhatWasSaved(t *testing.T) {
	dir := t.TempDir()
	d := openTestDisk(t, vfs.OS{}, dir)
	require.NoError(t, d.begin(identity{ID: 5, List: 6, Name: "a"}, firstSnapshot(testMembers())))
	for index := uint64(2); index < 10; index++ {
		require.NoError(t, saved(d, index))
	}
	require.NoError(t, saved(d, 7)) // a new leader replaces the end
	_, err := openDisk(vfs.OS{}, dir)
	require.ErrorIs(t, err, vfs.ErrLocked)
	require.NoError(t, d.Close())

	d = openTestDisk(t, vfs.OS{}, dir)
	require.Equal(t, identity{ID: 5, List: 6, Name: "a"}, d.who)
	last, err := d.LastIndex()
	require.NoError(t, err)
	require.EqualValues(t, 7, last)
	hard, members, err := d.InitialState()
	require.NoError(t, err)
	require.EqualValues(t, 7, hard.GetTerm())
	require.Len(t, members.GetVoters(), 3)
}

// TestDiskPowerCuts cuts the power at every change. What was saved is there, and of what was not
// everything or nothing.
func TestDiskPowerCuts(t *testing.T) {
	for step, whole := 1, false; !whole; step++ {
		root := t.TempDir()
		dir := filepath.Join(root, "e")
		fs, err := crashfs.New(root)
		require.NoError(t, err)
		fs.CutAfter(step)
		begun, index, err := work(fs, dir)
		whole = err == nil
		for seed := range uint64(20) {
			dst := filepath.Join(t.TempDir(), "r")
			require.NoError(t, fs.Crash(rand.New(rand.NewPCG(seed, 0)), dst))
			d := openTestDisk(t, vfs.OS{}, filepath.Join(dst, "e"))
			if begun {
				require.EqualValues(t, 5, d.who.ID)
			}
			last, err := d.LastIndex()
			require.NoError(t, err)
			require.GreaterOrEqual(t, last, index)
			require.LessOrEqual(t, last, index+1)
			if index > 1 {
				require.GreaterOrEqual(t, d.hard.GetTerm(), index)
				term, err := d.Term(index)
				require.NoError(t, err)
				require.Equal(t, index, term)
			}
			require.NoError(t, d.Close())
		}
	}
}

// work uses a directory as a member does, and returns whether it began, and the last index that was
// saved.
func work(fs vfs.FS, dir string) (begun bool, index uint64, err error) {
	d, err := openDisk(fs, dir)
	if err != nil {
		return false, 0, err
	}
	defer d.Close()
	if err := d.begin(identity{ID: 5}, firstSnapshot(testMembers())); err != nil {
		return false, 0, err
	}
	index = 1
	for index < 6 {
		if err := saved(d, index+1); err != nil {
			return true, index, err
		}
		index++
		if index == 4 {
			if err := d.compact(snapshot(3, 3, &pb.ConfState{Voters: []uint64{5}}, State{})); err != nil {
				return true, index, err
			}
		}
	}
	return true, index, nil
}

// An incomplete batch at the end was never answered and is cut off. Other damage is reported.
func TestDiskDamage(t *testing.T) {
	dir := t.TempDir()
	_, last, err := work(vfs.OS{}, dir)
	require.NoError(t, err)
	path := filepath.Join(dir, diskFile)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	var ends []int
	for at := len(diskMagic); at < len(content); {
		_, items := parseBatch(content[at:])
		at += batchHead + len(items)
		ends = append(ends, at)
	}
	for at := range content {
		damaged := append([]byte(nil), content...)
		damaged[at] ^= 0x10
		require.NoError(t, os.WriteFile(path, damaged, 0o644))
		d, err := openDisk(vfs.OS{}, dir)
		if at < ends[len(ends)-2] {
			require.ErrorContains(t, err, "remove this member", "byte %d", at)
			continue
		}
		require.NoError(t, err, "byte %d", at)
		got, _ := d.LastIndex()
		require.Equal(t, last-1, got)
		require.EqualValues(t, ends[len(ends)-2], d.size)
		require.NoError(t, d.Close())
	}
	for size := ends[len(ends)-2]; size < len(content); size++ {
		require.NoError(t, os.WriteFile(path, content[:size], 0o644))
		d := openTestDisk(t, vfs.OS{}, dir)
		require.NoError(t, saved(d, last)) // and goes on behind the intact part
		require.NoError(t, d.Close())
		d = openTestDisk(t, vfs.OS{}, dir)
		got, _ := d.LastIndex()
		require.Equal(t, last, got)
		require.NoError(t, d.Close())
	}
}

func FuzzDisk(f *testing.F) {
	dir := f.TempDir()
	_, _, err := work(vfs.OS{}, dir)
	require.NoError(f, err)
	content, err := os.ReadFile(filepath.Join(dir, diskFile))
	require.NoError(f, err)
	f.Add(content)
	f.Fuzz(func(_ *testing.T, content []byte) {
		d := &disk{MemoryStorage: raft.NewMemoryStorage(), hard: &pb.HardState{}, next: 1}
		_, _ = d.load(content)
	})
}

func FuzzEnvelope(f *testing.F) {
	b, err := (&envelope{to: "a", from: "b", addr: "c", message: &pb.Message{Term: new(uint64(1))}}).encode()
	require.NoError(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeEnvelope(b)
		if err == nil {
			_, err = e.encode()
			require.NoError(t, err)
		}
	})
}

// A member whose disk fails says nothing any more: what it would say may be forgotten.
func TestAFailedDiskIsFinal(t *testing.T) {
	for name, fail := range map[string]func(*faultfs.FS){
		"write": func(fs *faultfs.FS) { fs.FailWrite(1, errors.New("broken")) },
		"sync":  func(fs *faultfs.FS) { fs.FailSync(1, errors.New("broken")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.cluster("a", "b", "c")
			n := w.mustLead()
			fs := faultfs.New(n.fs)
			n.r.mu.Lock()
			n.r.disk.fs = fs
			var err error
			require.NoError(t, n.r.disk.file.Close())
			n.r.disk.file, err = fs.OpenFile(n.r.disk.path, os.O_RDWR, 0o644)
			require.NoError(t, err)
			n.r.mu.Unlock()
			fail(fs)
			sent := n.spy()
			changed := n.r.Changed()
			n.propose()
			require.Empty(t, *sent)
			<-changed
			require.ErrorContains(t, n.r.Err(), "broken")
			_, leads := n.r.Leading()
			require.False(t, leads)
			require.NotSame(t, n, w.mustLead())
			n.kill()
			n.start()
			w.converge()
		})
	}
}

// The file of a member does not grow for ever, and its successor has everything.
func TestTheFileStaysSmall(t *testing.T) {
	w := newWorld(t, 1)
	w.cluster("a", "b", "c")
	for range 300 {
		w.mustPropose()
	}
	w.converge()
	for _, n := range w.nodes {
		size, err := n.r.disk.file.Size()
		require.NoError(t, err)
		require.Less(t, size, int64(2*diskFilled))
		n.cutPower()
	}
	for _, n := range w.nodes {
		n.start()
	}
	require.Len(t, w.leaderState().History, keptAppointments)
	w.converge()
}

func TestWhatOthersCanCountOn(t *testing.T) {
	members := identify("test", []Member{{Name: "a"}, {Name: "b"}})
	for name, c := range map[string]struct {
		save   func(d *disk) error
		untold bool
	}{
		"nothing": {func(*disk) error { return nil }, true},
		"a vote": {func(d *disk) error {
			return d.save(&raft.Ready{HardState: &pb.HardState{Term: new(uint64(1)), Vote: new(uint64(7)), Commit: new(uint64(1))}, MustSync: true})
		}, false},
		"a term": {func(d *disk) error {
			return d.save(&raft.Ready{HardState: &pb.HardState{Term: new(uint64(2)), Vote: new(uint64(0)), Commit: new(uint64(1))}, MustSync: true})
		}, false},
		"an entry": {func(d *disk) error {
			return d.save(&raft.Ready{Entries: []*pb.Entry{{Index: new(uint64(2)), Term: new(uint64(1))}}, MustSync: true})
		}, false},
		"a snapshot of others": {func(d *disk) error { return d.save(&raft.Ready{Snapshot: snapshot(9, 1, &pb.ConfState{}, State{})}) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d, err := openDisk(vfs.OS{}, dir)
			require.NoError(t, err)
			require.False(t, d.untold(), "a member that joins has no list")
			require.NoError(t, d.begin(identity{ID: 1, List: 2, Name: "a"}, firstSnapshot(members)))
			require.NoError(t, c.save(d))
			require.Equal(t, c.untold, d.untold())
			require.NoError(t, d.Close())
			d, err = openDisk(vfs.OS{}, dir)
			require.NoError(t, err)
			require.Equal(t, c.untold, d.untold(), "after a restart")
			require.NoError(t, d.forget())
			require.Zero(t, d.who)
			require.NoError(t, d.begin(identity{ID: 3, List: 4, Name: "a"}, firstSnapshot(members)))
			require.NoError(t, d.Close())
			d, err = openDisk(vfs.OS{}, dir)
			require.NoError(t, err)
			require.Equal(t, identity{ID: 3, List: 4, Name: "a"}, d.who)
			require.True(t, d.untold())
			require.NoError(t, d.Close())
		})
	}
}
