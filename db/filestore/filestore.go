// Package filestore keeps the records of one database in a bbolt file, with an ordered overlay in memory in
// front of it.
//
//	Apply ──► active overlay ──(freeze)──► frozen overlay ──(checkpoint: one sorted bbolt transaction)──► file
//	Get, Scan:  active, then frozen, then file
//
// The update log is the write-ahead log: an update is in the log before Apply sees it, the overlays are lost in a
// crash and filled again from the log, beginning after Meta.Stamp.
//
// Invariants:
//   - the log is synced up to a stamp before the transaction that holds the stamp commits;
//   - stamp, count, log identity and data change in one transaction;
//   - a reader takes the view (active and frozen) first and begins its transaction afterwards;
//   - no transaction outlives the call that began it, but that of a Frozen.
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
	"gotycoon/ulog"
)

// DefaultLimit is the overlay size that starts a checkpoint, in bytes. Larger overlays make larger and
// better sorted batches, and a longer replay after a crash; see BENCHMARKS.md.
const DefaultLimit = 64 << 20

// Options of a Store.
type Options struct {
	ReadOnly   bool  // the file is not written; updates applied (a replay) stay in memory
	TryLock    bool  // do not wait when another process has the file open
	Persistent bool  // for a new file: no expiration prefix
	Limit      int64 // overlay bytes that start a checkpoint; 0 means DefaultLimit
	LWW        bool  // keep versions, from now on where the file has none; a file that has some keeps them in any case
	Removals   int64 // removals that are remembered, with versions; 0 means DefaultRemovals

	Logger *slog.Logger // nil means silent
}

// Log is what a checkpoint needs of the update log.
type Log interface {
	SyncTo(ulog.Stamp) error // makes the log durable up to a stamp
}

// Store is one open database file. It implements store.Store.
type Store struct {
	path string
	opts Options
	file *bolt.DB

	view atomic.Pointer[view]

	applyMu     sync.Mutex   // held over a change of the active overlay and over a freeze
	activeBytes atomic.Int64 // memory of the active overlay
	activeLarge atomic.Int64 // of it: large values
	lww         bool         // versions are kept
	cleared     Version      // of the last clear; guarded by applyMu
	followed    followed     // guarded by applyMu
	pruning     pruning
	prepared    memstore.Prepared
	finished    bool // by Finish; its caller is alone
	made        bool // by Open: there was no file

	cp checkpointer
}

// Open opens the file at path, or creates it. A file that is there is not written: Rebase or Amend comes first. The caller attaches the log
// and replays it, from Meta().Stamp on, with Apply.
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
		s.startCheckpoints()
	}
	return s, nil
}

// Absent returns a store for a file that is not there and is not made: it has the Meta that a new file would have, and can be abandoned.
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
	if m.Copied() {
		m.LogID = ID{} // or a server would bring in unasked what its log has after the copy was made
	}
	if s.opts.LWW && !m.LWW && !s.opts.ReadOnly {
		m.LWW, m.Base = true, Oldest // the file says so when it is first written
	}
	s.lww, s.cleared = m.LWW, Version{m.ClearedAt, m.ClearedBy}
	s.followed = followed{m.Position, m.PositionAt}
	s.cp.init(m)
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
	value := tx.Bucket([]byte(dataBucket)).Get(appendBoltKey(room[:0], key))
	found := value != nil
	dst, err = store.Append(dst, value, r)
	return dst, found, errors.Join(err, tx.Rollback())
}

// Prepare copies large values that are about to be applied.
func (s *Store) Prepare(ups []ulog.Update) { s.prepared.Add(ups, headOf(s.lww)) }

// Forget takes back Prepare.
func (s *Store) Forget(ups []ulog.Update) { s.prepared.Forget(ups) }

// headOf returns the size of what an overlay has in front of a value.
func headOf(lww bool) int {
	if lww {
		return headSize
	}
	return 1
}

// Apply changes the active overlay. It implements store.Store.
func (s *Store) Apply(at ulog.Stamp, ups []ulog.Update) {
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

// Finish makes everything applied durable and marks the file as cleanly closed, but keeps it: no other process can open it yet. Nothing is
// applied afterwards.
func (s *Store) Finish() error {
	s.stopCheckpoints()
	if s.opts.ReadOnly || s.finished {
		return nil
	}
	err := s.checkpoint(true)
	s.finished = err == nil
	return err
}

// Close is Finish, and closes the file.
func (s *Store) Close() error { return errors.Join(s.Finish(), s.closeFile()) }

// Abandon closes the file as it is. What is only in memory is in the log.
func (s *Store) Abandon() error {
	s.stopCheckpoints()
	return s.closeFile()
}

// Discard is Abandon for a store that nobody has used: there is no file afterwards if there was none before Open. It is removed while it is
// locked, so that another process that waits for it begins with one of its own.
func (s *Store) Discard() error {
	var err error
	if s.made {
		err = os.Remove(s.path)
	}
	return errors.Join(err, s.Abandon())
}

// closeFile leaves an empty view: who comes too late gets the error of the closed file.
func (s *Store) closeFile() error {
	old := s.view.Swap(newView(newOverlay(s.Meta().Stamp, s.lww), nil))
	old.release()
	if s.file == nil { // it is Absent
		return nil
	}
	return s.file.Close()
}
