// Package filestore keeps the records of one database in a bbolt file, with ordered overlays in
// memory in front of the file.
//
//	Apply ──► active overlay ──(freeze)──► frozen overlay ──(checkpoint: sorted)──► file
//	Get, Scan:  active, then frozen, then file
//
// The update log is the write-ahead log. An update is in the log before Apply sees it. A crash
// loses the overlays, and a replay of the log from Meta.Stamp on fills them again.
//
// Invariants:
//   - The log is synced up to a stamp before the transaction with that stamp commits. Otherwise a
//     power cut could leave a file that is ahead of its log.
//   - Stamp, count, identity of the log and data change in one transaction.
//   - A reader takes the view (active and frozen overlay) first and begins its transaction
//     afterwards, see view.
//   - No transaction outlives the call that began it, except the transaction of a Frozen: bbolt
//     cannot use a replaced page again while an older transaction is open.
//   - A removal is a tombstone in the overlay; a clear hides the file below it.
//   - Writers wait when the overlay is twice its limit (Throttle).
//   - A record that the disk has changed is noticed: Meta has one checksum of all records
//     (RecordSum), which verify, compact and repair compare. The description has its own checksum.
//   - Of the position in the file and the position in the log the newer counts, by the stamp of its
//     record in the log; replay and checkpoints only move a position on (SetPosition).
//
// Where to read on: the checkpoint and why writers sometimes wait for it, checkpoint.go; the exact
// count, count.go; last-writer-wins versions, version.go and prune.go; views of an instant,
// frozen.go.
package filestore

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/memstore"
	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// DefaultLimit is the overlay size in bytes that starts a checkpoint. A larger overlay makes larger
// and better sorted batches, and a longer replay after a crash; see BENCHMARKS.md.
const DefaultLimit = 64 << 20

// Options of a Store.
type Options struct {
	ReadOnly   bool  // the file is not written; updates that are applied (a replay) stay in memory
	TryLock    bool  // do not wait when another process has the file open
	Persistent bool  // for a new file: values have no expiration prefix
	Limit      int64 // overlay bytes that start a checkpoint; 0 means DefaultLimit
	LWW        bool  // keep versions from now on; a file that has versions keeps them anyway
	Removals   int64 // removals to remember, with versions; 0 means DefaultRemovals

	Logger *slog.Logger // nil means silent
}

// Log is what a checkpoint needs of the update log.
type Log interface {
	SyncTo(update.Stamp) error // makes the log durable up to a stamp
}

// Store is one open database file. It implements store.Store.
type Store struct {
	path string
	opts Options
	file *bolt.DB

	view atomic.Pointer[view]

	applyMu     sync.Mutex   // held over a change of the active overlay and over a freeze
	activeBytes atomic.Int64 // memory of the active overlay
	activeLarge atomic.Int64 // the part of activeBytes that large values take
	lww         bool         // versions are kept
	cleared     Version      // of the last clear; guarded by applyMu
	followed    followed     // guarded by applyMu
	removals    pruner
	prepared    memstore.Prepared
	finished    bool // by Finish, whose caller is alone
	made        bool // by Open: there was no file before

	cp checkpointer
}

// Open opens the file at path, or creates it. Open does not write to a file that is already there:
// Rebase or Amend does so first. The caller attaches the log and replays it from Meta().Stamp on,
// with Apply.
func Open(path string, o Options) (*Store, error) {
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	if o.Removals <= 0 {
		o.Removals = DefaultRemovals
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	_, err := os.Stat(path)
	made := errors.Is(err, os.ErrNotExist)
	err = identify(path)
	if errors.Is(err, os.ErrNotExist) && !o.ReadOnly {
		err = create(path, Meta{Format: formatVersion, ID: NewID(), Clean: true, Persistent: o.Persistent, Summed: true, LWW: o.LWW})
	}
	if err != nil {
		return nil, err
	}
	file, err := openBolt(path, o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	s := &Store{path: path, opts: o, file: file, made: made}
	if err := s.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), file.Close())
	}
	if !o.ReadOnly {
		s.cp.start(s)
	}
	return s, nil
}

// Absent returns a store for a file that does not exist and is not made. The store has the Meta
// that a new file would have, and can only be abandoned.
func Absent(path string) *Store {
	s := &Store{path: path}
	s.cp.init(Meta{Format: formatVersion, ID: NewID(), Clean: true})
	s.view.Store(newView(newOverlay(0, false), nil))
	return s
}

// load reads the file's description and makes the first view.
func (s *Store) load() error {
	var m Meta
	err := s.file.View(func(tx *bolt.Tx) (err error) {
		m, err = readMeta(tx)
		return err
	})
	if err != nil {
		return err
	}
	if m.Copied() { // otherwise a server would replay, unasked, what the log has after the copy
		m.LogID = ID{}
	}
	if s.opts.LWW && !m.LWW && !s.opts.ReadOnly {
		m.LWW, m.Base = true, Oldest // the file says so when it is first written
	}
	s.lww, s.cleared = m.LWW, Version{m.ClearedAt, m.ClearedBy}
	s.followed = followed{m.Position, m.PositionAt}
	s.cp.init(m)
	s.removals = pruner{file: s.file, cp: &s.cp, limit: s.opts.Removals}
	s.view.Store(newView(newOverlay(m.Stamp, s.lww), nil))
	return nil
}

// Get appends the value of key to dst.
func (s *Store) Get(dst, key []byte, r store.Reader) ([]byte, bool, error) {
	v := s.acquire()
	defer v.release()
	if dst, state, err := v.get(dst, key, r); state != unknown {
		return dst, state == live, err
	}
	return s.getBase(dst, key, r)
}

func (s *Store) getBase(dst, key []byte, r store.Reader) ([]byte, bool, error) {
	tx, err := s.file.Begin(false)
	if err != nil {
		return dst, false, fmt.Errorf("read %s: %w", s.path, err)
	}
	var room [64]byte
	value := tx.Bucket([]byte(DataBucket)).Get(appendBoltKey(room[:0], key))
	found := value != nil
	dst, err = store.Append(dst, value, r)
	return dst, found, errors.Join(err, tx.Rollback())
}

// Prepare copies large values that are about to be applied. It implements store.Preparer.
func (s *Store) Prepare(ups []update.Update) { s.prepared.Add(ups, headOf(s.lww)) }

// Forget takes Prepare back for updates that will not be applied.
func (s *Store) Forget(ups []update.Update) { s.prepared.Forget(ups) }

// headOf returns the size of what an overlay puts in front of a value.
func headOf(lww bool) int {
	if lww {
		return headSize
	}
	return 1
}

// Apply changes the active overlay. It implements store.Store.
func (s *Store) Apply(at update.Stamp, ups []update.Update) {
	s.applyMu.Lock()
	size, large := s.view.Load().active.apply(at, ups, &s.prepared)
	if s.lww {
		s.noteClear(at, ups)
	}
	s.activeLarge.Store(large)
	s.activeBytes.Store(size)
	s.applyMu.Unlock()
	if size >= s.opts.Limit {
		s.cp.wakeUp()
	}
}

// FileSize returns the size of the file in bytes.
func (s *Store) FileSize() int64 {
	info, err := os.Stat(s.path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Finish makes everything applied durable and marks the file as cleanly closed, but keeps the file
// open and locked: no other process can open it yet. Nothing may be applied afterwards.
func (s *Store) Finish() error {
	s.cp.stop()
	if s.opts.ReadOnly || s.finished {
		return nil
	}
	err := s.checkpoint(true)
	s.finished = err == nil
	return err
}

// Close is Finish followed by closing the file.
func (s *Store) Close() error { return errors.Join(s.Finish(), s.closeFile()) }

// Abandon closes the file as it is. What is only in memory is in the log.
func (s *Store) Abandon() error {
	s.cp.stop()
	return s.closeFile()
}

// Discard is Abandon for a store that nobody has used. If Open created the file, Discard removes it
// while it is still locked, so that another process that waits for the lock begins with a file of
// its own.
func (s *Store) Discard() error {
	var err error
	if s.made {
		err = os.Remove(s.path)
	}
	return errors.Join(err, s.Abandon())
}

// closeFile leaves an empty view, so that a reader that comes too late gets the error of the closed
// file.
func (s *Store) closeFile() error {
	old := s.view.Swap(newView(newOverlay(s.Meta().Stamp, s.lww), nil))
	old.release()
	if s.file == nil { // it is Absent
		return nil
	}
	return s.file.Close()
}
