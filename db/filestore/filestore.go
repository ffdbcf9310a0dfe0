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
//   - The log is synced up to the newest stamp of an overlay before the first transaction that
//     writes the overlay. Otherwise a power cut could leave a file that is ahead of its log.
//   - Meta is replaced in the transaction of the data that it describes: count and checksum in
//     each, the stamp in the last one of a checkpoint. Before the last one Meta.Merging says how
//     far the checkpoint is.
//   - A reader takes the view (active and frozen overlay) first and begins its transaction
//     afterwards, see view.
//   - No transaction outlives the call that began it, except the transaction of a Frozen: bbolt
//     cannot use a replaced page again while an older transaction is open.
//   - A removal is a tombstone in the overlay; a clear hides the file below it.
//   - Writers wait when the overlay is too large: throttle.go says when.
//   - Meta has one checksum of all records (RecordSum), which verify, compact and repair compare: a
//     record that the disk has changed can be noticed. A running server does not compare it. The
//     description has its own checksum.
//   - Of the follower's position in the file (Meta.Position) and in the log the newer counts, by
//     the stamp of its record in the log; replay and checkpoints only move it on (SetPosition).
//
// The files stand above each other, and lint checks that none needs a file above it:
//
//	open.go                                file.go: the file's name, lock, and creation
//	frozen.go      views of an instant
//	checkpoint.go  overlays into the file; the life of an overlay; goroutines and locks
//	write.go       the transactions of a checkpoint
//	scan.go, count.go, lww.go, stats.go    readers: records, exact count, versions, figures
//	filestore.go   the Store: Get, Throttle, Apply
//	throttle.go    why and how long writers wait
//	prune.go       how removals are forgotten
//	overlay.go     the updates in memory
//	meta.go, version.go, ledger.go         formats
//
// A set passes filestore.go, throttle.go, and overlay.go; later the checkpoint brings it through
// write.go into the file.
package filestore

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/memstore"
	"gotycoon/db/store"
	"gotycoon/internal/metrics"
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

	applyMu  sync.Mutex // held over a change of the active overlay and over a freeze
	lww      bool       // versions are kept
	cleared  Version    // of the last clear; guarded by applyMu
	followed followed   // guarded by applyMu
	removals pruner
	prepared memstore.Prepared
	finished bool // by Finish, whose caller is alone
	made     bool // by Open: there was no file before

	throttle throttle
	desc     description
	cp       checkpointer
}

// A checkpointer is the state of the background checkpoint. Its goroutine is started by Open and
// ended by Finish and Abandon.
type checkpointer struct {
	// runMu is held over a checkpoint, and while a command works on the file (Hold). It is taken
	// before the database's commit lock.
	runMu sync.Mutex
	log   Log        // nil: nothing to sync; guarded by runMu
	done  func(Meta) // told of each checkpoint; guarded by runMu

	wake    chan struct{} // holds one wish for a checkpoint
	quit    chan struct{}
	stopped chan struct{} // closed when the goroutine has ended; nil for a read-only file

	times *metrics.Histogram // of checkpoints, in nanoseconds
}

// init makes s ready for a file, or for the lack of one, with the description m.
func (s *Store) init(m Meta) {
	s.lww, s.cleared = m.LWW, Version{m.ClearedAt, m.ClearedBy}
	s.followed = followed{m.Position, m.PositionAt}
	s.desc.init(m)
	s.throttle.init(s.opts.Limit, s.cp.wakeUp)
	s.cp.init()
	s.removals = pruner{file: s.file, desc: &s.desc, limit: s.opts.Removals}
	s.view.Store(newView(newOverlay(m.Stamp, s.lww), nil))
}

func (c *checkpointer) init() {
	c.times = metrics.NewTimes()
	c.wake = make(chan struct{}, 1)
	c.quit = make(chan struct{})
}

// wakeUp asks for a checkpoint without waiting for it.
func (c *checkpointer) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default: // one is asked for already
	}
}

// acquire returns the current view. The caller must release it soon.
func (s *Store) acquire() *view {
	for {
		v := s.view.Load()
		for n := v.refs.Load(); n > 0; n = v.refs.Load() {
			if v.refs.CompareAndSwap(n, n+1) {
				return v
			}
		}
	}
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

// Throttle waits while the active overlay has twice its limit without large values, or eight times
// with them; see "Why writers wait". The error says why the file cannot take the updates.
func (s *Store) Throttle() error {
	if s.throttle.hasRoom() {
		return nil
	}
	return s.throttle.wait(s.throttle.hasRoom)
}

// ThrottleLarge is Throttle for a caller that is about to store a large value: everything in the
// overlay counts.
func (s *Store) ThrottleLarge() error { return s.throttleAt(stallAt) }

// ThrottleReplay is Throttle for the replay of the log at the start.
func (s *Store) ThrottleReplay() error { return s.throttleAt(replayStall) }

func (s *Store) throttleAt(times int64) error {
	if s.throttle.hasRoomBelow(times) {
		return nil
	}
	return s.throttle.wait(func() bool { return s.throttle.hasRoomBelow(times) })
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
	s.throttle.note(size, large)
	s.applyMu.Unlock()
	if size >= s.opts.Limit {
		s.cp.wakeUp()
	}
}

// noteClear remembers the version of the newest clear among updates. The caller holds applyMu.
func (s *Store) noteClear(at update.Stamp, ups []update.Update) {
	for i := range ups {
		if v := VersionOf(at, ups, i); ups[i].Op == update.OpClear && s.cleared.Less(v) {
			s.cleared = v
		}
	}
}

// SetPosition gives the next checkpoint what to put into Meta.Position: the content of a note in
// the log with the stamp at. Every update that the note speaks of has been applied. A note that is
// not newer than the present one changes nothing, so a caller that brings in what a log remembers
// need not ask which of the two knows better.
//
// The checkpoint syncs the log up to the note before it writes the note into the file. So a file
// never holds a note that a power cut has taken from its log, and of file and log the one with the
// greater stamp is right.
func (s *Store) SetPosition(state []byte, at update.Stamp) {
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	if at <= s.followed.at {
		return
	}
	s.followed = followed{bytes.Clone(state), at}
	s.view.Load().active.follow = s.followed
}

// Followed returns how far a master was followed; nil where nothing is known.
func (s *Store) Followed() []byte {
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	return s.followed.state
}

// Meta returns the file's description as of the last checkpoint.
func (s *Store) Meta() Meta { return s.desc.get() }

// leftover returns the frozen overlay; nil where there is none.
func (s *Store) leftover() *overlay {
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	return s.view.Load().frozen
}
