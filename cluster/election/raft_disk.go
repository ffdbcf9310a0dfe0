package election

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"gotycoon/internal/vfs"
)

// A disk keeps what raft must not forget in one file of its directory:
//
//	┌────────────┬────────┬────────┬──
//	│ "gtelect1" │ batch  │ batch  │ …
//	└────────────┴────────┴────────┴──
//
// A batch, drawn in raft_batch.go, is what was saved at one time. It is written at once and synced
// before anything that is based on it leaves the server, so only the last batch can be incomplete
// after a crash; it is then cut off, and nobody was told of it. The numbers of the batches count
// from 1. A batch that is damaged and has an intact one of a higher number behind it was synced
// once: that is no crash, and no start ignores it.
//
// A file that has grown is replaced by a new one with one batch that holds everything.
type disk struct {
	fs   vfs.FS
	path string
	lock vfs.File

	file vfs.File
	size int64
	next uint64 // number of the next batch

	*raft.MemoryStorage // what the file holds, for raft
	who                 identity
	hard                *pb.HardState
}

// An identity is what a member must not forget about itself.
type identity struct {
	ID   uint64 `json:"id"`
	List uint64 `json:"list"` // fingerprint of the list that the cluster began with
	Name string `json:"name"`
}

const (
	diskMagic  = "gtelect1"
	diskFile   = "election"
	diskFilled = 256 << 10 // bytes from which the file is replaced

	// A program that a server starts has the server's files, and with them the lock, for a moment.
	lockWait = time.Second
)

// openDisk opens or makes the file of a directory, and locks the directory.
func openDisk(fs vfs.FS, dir string) (*disk, error) {
	if err := vfs.MakeDir(fs, dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the directory of the election: %w", err)
	}
	d := &disk{
		fs: fs, path: filepath.Join(dir, diskFile), next: 1,
		MemoryStorage: raft.NewMemoryStorage(), hard: &pb.HardState{},
	}
	if err := d.open(filepath.Join(dir, "lock")); err != nil {
		return nil, errors.Join(fmt.Errorf("open the directory of the election: %w", err), d.Close())
	}
	return d, nil
}

var errNewer = errors.New("a newer version of the server has written the file, and this one cannot read it; start that version")

func (d *disk) open(lock string) (err error) {
	if d.lock, err = d.fs.OpenFile(lock, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return err
	}
	if err = d.fs.Lock(d.lock, lockWait); err != nil {
		return fmt.Errorf("%s: %w; end the other server that uses this directory", lock, err)
	}
	if _, err = d.fs.Stat(d.path); errors.Is(err, os.ErrNotExist) {
		err = vfs.WriteFileAtomic(d.fs, d.path, []byte(diskMagic))
	}
	if err != nil {
		return err
	}
	data, err := vfs.ReadFile(d.fs, d.path)
	if err != nil {
		return err
	}
	good, err := d.load(data)
	if errors.Is(err, errNewer) {
		return fmt.Errorf("%s: %w", d.path, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; remove this member from the cluster and add it again with an"+
			" empty directory", d.path, err)
	}
	return d.append(int64(good), int64(len(data)))
}

// append opens the file for appending at the end of its intact part.
func (d *disk) append(good, size int64) (err error) {
	if d.file, err = d.fs.OpenFile(d.path, os.O_RDWR, 0o644); err != nil {
		return err
	}
	d.size = good
	if good == size {
		return nil
	}
	if err := d.file.Truncate(good); err != nil {
		return err
	}
	return d.file.Sync()
}

// load takes over the batches of a file and returns the size of the intact part.
func (d *disk) load(data []byte) (int, error) {
	const family = len(diskMagic) - 1 // the last byte is the version
	if len(data) < len(diskMagic) || string(data[:family]) != diskMagic[:family] {
		return 0, errors.New("the file is none of an election, or its first bytes are damaged")
	}
	if data[family] > diskMagic[family] {
		return 0, errNewer
	}
	if data[family] != diskMagic[family] {
		return 0, errors.New("the first bytes of the file are damaged")
	}
	at := len(diskMagic)
	for {
		no, items := parseBatch(data[at:])
		if items == nil {
			break
		}
		if no != d.next {
			return 0, fmt.Errorf("batch %d at offset %d stands where %d should", no, at, d.next)
		}
		if err := d.take(items); err != nil {
			return 0, fmt.Errorf("batch %d at offset %d: %w", no, at, err)
		}
		d.next++
		at += batchHead + len(items)
	}
	for behind := at + 1; behind < len(data); behind++ {
		if no, items := parseBatch(data[behind:]); items != nil && no > d.next {
			return 0, fmt.Errorf("batch %d at offset %d is damaged", d.next, at)
		}
	}
	return at, nil
}

// take takes over the items of a batch.
func (d *disk) take(items []byte) error {
	for len(items) > 0 {
		if len(items) < itemHead || uint64(len(items)-itemHead) < uint64(binary.LittleEndian.Uint32(items[1:])) {
			return errors.New("the items are cut off")
		}
		n := itemHead + int(binary.LittleEndian.Uint32(items[1:]))
		if err := d.takeItem(items[0], items[itemHead:n]); err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}

func (d *disk) takeItem(kind byte, content []byte) error {
	switch kind {
	case itemIdentity:
		return json.Unmarshal(content, &d.who)
	case itemSnapshot:
		s := &pb.Snapshot{}
		if err := proto.Unmarshal(content, s); err != nil {
			return err
		}
		return d.ApplySnapshot(s)
	case itemHardState:
		h := &pb.HardState{}
		if err := proto.Unmarshal(content, h); err != nil {
			return err
		}
		d.hard = h
		return d.SetHardState(h)
	case itemEntry:
		e := &pb.Entry{}
		if err := proto.Unmarshal(content, e); err != nil {
			return err
		}
		return d.Append([]*pb.Entry{e})
	}
	return fmt.Errorf("an item is of the unknown kind %d: the file was written by a newer program", kind)
}

// begin saves who the member is, and the snapshot that a new cluster begins with, nil for a member
// that joins.
func (d *disk) begin(who identity, first *pb.Snapshot) error {
	var b batch
	b.addIdentity(who)
	if first != nil {
		b.addMessage(itemSnapshot, first)
		b.addMessage(itemHardState, &pb.HardState{
			Term: first.Metadata.Term, Vote: new(uint64(0)), Commit: first.Metadata.Index,
		})
	}
	return d.write(&b)
}

// untold reports whether the member has told the others of its list nothing that they could count
// on: it has stored no entry and given no vote, neither to another one nor to itself, and has heard
// of no election. It may have answered pre-votes, which bind nobody. So to the others it is what it
// would be with an empty directory, and there it may begin with another list. Without the first
// snapshot of a list, untold returns false: the member has joined, and a leader knows its number.
func (d *disk) untold() bool {
	first, _ := d.Snapshot() // never fails
	last, _ := d.LastIndex() // never fails
	return first.GetMetadata().GetIndex() == firstIndex && last == firstIndex && d.hard.GetTerm() == firstTerm && d.hard.GetVote() == raft.None
}

// forget makes the directory an empty one.
func (d *disk) forget() error {
	if err := vfs.WriteFileAtomic(d.fs, d.path, []byte(diskMagic)); err != nil {
		return err
	}
	err := d.file.Close()
	d.next, d.MemoryStorage, d.who, d.hard = 1, raft.NewMemoryStorage(), identity{}, &pb.HardState{}
	return errors.Join(err, d.append(int64(len(diskMagic)), int64(len(diskMagic))))
}

// save makes what raft hands over durable. A hard state in which only the commit index is new is
// not written: raft finds the index again. It is written with the next entries, so a configuration
// that is known to be committed stays known together with what follows it.
func (d *disk) save(rd *raft.Ready) error {
	if !raft.IsEmptyHardState(rd.HardState) {
		d.hard = rd.HardState
		if err := d.SetHardState(rd.HardState); err != nil {
			return err
		}
	}
	if !rd.MustSync && raft.IsEmptySnap(rd.Snapshot) {
		return nil
	}
	var b batch
	if !raft.IsEmptySnap(rd.Snapshot) {
		b.addMessage(itemSnapshot, rd.Snapshot)
	}
	for _, e := range rd.Entries {
		b.addMessage(itemEntry, e)
	}
	b.addMessage(itemHardState, d.hard)
	return d.write(&b)
}

// write appends a batch, makes it durable and takes it over.
func (d *disk) write(b *batch) error {
	if b.err != nil {
		return b.err
	}
	sealed := b.sealed(d.next)
	if _, err := d.file.WriteAt(sealed, d.size); err != nil {
		return fmt.Errorf("write %s: %w", d.path, err)
	}
	if err := d.file.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", d.path, err)
	}
	d.size += int64(len(sealed))
	d.next++
	return d.take(b.bytes)
}

// compact replaces the file by one that begins with a snapshot of the entries that were applied.
func (d *disk) compact(s *pb.Snapshot) error {
	if err := d.Compact(s.Metadata.GetIndex()); err != nil {
		return err
	}
	var b batch
	b.addIdentity(d.who)
	b.addMessage(itemSnapshot, s)
	last, _ := d.LastIndex() // never fails
	if first := s.Metadata.GetIndex() + 1; first <= last {
		entries, err := d.Entries(first, last+1, 1<<62)
		if err != nil {
			return err
		}
		for _, e := range entries {
			b.addMessage(itemEntry, e)
		}
	}
	b.addMessage(itemHardState, d.hard)
	if b.err != nil {
		return b.err
	}
	content := append([]byte(diskMagic), b.sealed(1)...)
	if err := vfs.WriteFileAtomic(d.fs, d.path, content); err != nil {
		return err
	}
	err := d.file.Close()
	d.next = 2
	return errors.Join(err, d.append(int64(len(content)), int64(len(content))))
}

// Close closes the files, which ends the lock.
func (d *disk) Close() error {
	var errs []error
	for _, f := range []vfs.File{d.file, d.lock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
