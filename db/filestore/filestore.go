// Package filestore keeps the records of one database in a bbolt file, with ordered overlays in
// memory in front of the file.
//
//	Apply ──► active overlay ──(freeze)──► frozen overlays ──(flush)──► runs ──(merge)──► bottom
//	          └──────────────── memory ───────────────────┘            └───────── file ─────────┘
//	Get, Scan: from left to right; the first that knows a key decides
//
// The update log is the write-ahead log. An update is in the log before Apply sees it. A crash
// loses the overlays, and a replay of the log from Meta.Stamp on fills them again.
//
// Invariants:
//   - The log is synced up to the newest stamp of an overlay before the first transaction that
//     writes the overlay. Otherwise a power cut could leave a file that is ahead of its log.
//   - Meta is replaced in the transaction of the data that it describes: the stamp with the last
//     transaction of a flush, count and checksum of the bottom with each piece of a merge. After
//     any transaction the file has the records of the moment Meta.Stamp.
//   - A reader takes the view (the overlays) first and begins its transaction afterwards, see
//     view. It takes the list of runs that belongs to its transaction, see runTable.
//   - A reader takes the file together with the lists of its runs (opened), and keeps a reference
//     until its transaction has ended: a compaction replaces both at once.
//   - No transaction outlives the call that began it, except the transaction of a Frozen: bbolt
//     cannot use a replaced page again while an older transaction is open.
//   - A removal is a tombstone in overlays and runs; a clear hides everything below it.
//   - Writers are slowed down when the file is behind, and wait when memory is full: brake.go.
//   - Meta has one checksum of all records below the runs (RecordSum), which verify, compact and
//     repair compare: a record that the disk has changed can be noticed. A running server does not
//     compare it. The description, and each block, has a checksum of its own.
//   - Of the follower's position in the file (Meta.Position) and in the log the newer counts, by
//     the stamp of its record in the log; replay and checkpoints only move it on (SetPosition).
//
// The files stand above each other, and lint checks that none needs a file above it:
//
//	open.go                                file.go: the file's name, lock, and creation
//	frozen.go      views of an instant
//	compact.go     the file is copied without unused pages, and replaced
//	checkpoint.go  when to flush and merge; the life of an overlay; goroutines and locks
//	merge.go       runs into the bottom
//	bottom_write.go  how the bottom is changed
//	flush.go       an overlay into the file, as a run
//	count.go, lww.go, stats.go             readers: exact count, versions, figures
//	bulk.go        GetBulk
//	scan.go        Get and Scan: what a reader sees of all layers
//	filestore.go   the Store: Throttle, Apply
//	brake.go       why and how long writers wait
//	compact_swap.go, compact_copy.go       the steps of a compaction; compact_state.go: its figures
//	prune.go       how removals are forgotten
//	bottom.go      the lowest layer: packed records and the tree
//	union.go       the entries of many layers in order
//	opened.go      a file, its runs, and how many readers it has; package paging: its pages in memory
//	runs.go        which runs the file has; package run: what a run is
//	overlay.go     the updates in memory
//	meta.go, version.go, flagged.go, ledger.go, sum.go     formats, and the sums of records
//
// A set passes filestore.go, brake.go, and overlay.go; later the checkpoint brings it through
// flush.go and merge.go into the bottom.
package filestore

import (
	"bytes"
	"log/slog"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/memstore"
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

	// Memory is what there is of it for the pages of the file; 0 means that of the machine, or of
	// the control group of this process. Lookups in a larger file tell the system what they read.
	Memory int64

	// Background is told 1 when a checkpoint begins to work, and -1 when it ends; nil: nobody wants
	// to know. Any goroutine may call it, with locks of the store held.
	Background func(change int)

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

	view    atomic.Pointer[view]
	reading atomic.Pointer[opened] // the file, for readers; replaced by a compaction

	file  *bolt.DB  // that of reading, for whoever has runMu
	runs  *runTable // likewise
	older *opened   // readers from before a commit that failed and took place; guarded by runMu

	applyMu  sync.Mutex // held over a change of the active overlay and over a freeze
	lww      bool       // versions are kept
	cleared  Version    // of the last clear; guarded by applyMu
	followed followed   // guarded by applyMu
	removals pruner
	prepared memstore.Prepared
	reserve  *memstore.Reserve // memory of overlays that are written, for the next ones
	finished bool              // by Finish, whose caller is alone
	made     bool              // by Open: there was no file before

	bulkReads sync.Pool     // of *bulkRead
	asked     atomic.Uint64 // pages of the file that scans have asked the system for

	freezes     uint64 // number of the last freeze, which becomes Meta.Checkpoints; guarded by applyMu
	largeFrozen int64  // bytes of large values in frozen overlays; guarded by applyMu

	merger     merger
	unfinished bool // the file may have unfinished runs; guarded by runMu

	brake     brake
	desc      description
	cp        checkpointer
	compactor compactor
}

// A checkpointer is the state of the background checkpoint. Its goroutine is started by Open and
// ended by Finish and Abandon.
type checkpointer struct {
	// runMu is held over a checkpoint, and while a command works on the file (Hold). It is taken
	// before the database's commit lock.
	runMu sync.Mutex
	log   Log        // nil: nothing to sync; guarded by runMu
	done  func(Meta) // told of each checkpoint; guarded by runMu

	asked   atomic.Bool   // somebody wishes that the active overlay is flushed too
	wake    chan struct{} // holds one sign that there may be something to do
	quit    chan struct{}
	stopped chan struct{} // closed when the goroutine has ended; nil for a read-only file

	times *metrics.Histogram // of checkpoints, in nanoseconds
}

// Of the memory of written overlays, so many times the limit of one is kept: about what all
// overlays have when the brake begins.
const reserveShare = brakeAt

// init makes s ready for a file, or for the lack of one, with the description m.
func (s *Store) init(m Meta) {
	s.lww, s.cleared = m.LWW, Version{m.ClearedAt, m.ClearedBy}
	s.followed = followed{m.Position, m.PositionAt}
	s.desc.init(m)
	s.freezes, s.unfinished = m.Checkpoints, true
	s.merger.entries = pieceLeast
	s.brake.init(s.opts.Limit, s.cp.wakeUp)
	s.cp.init()
	s.compactor.init()
	s.removals = pruner{file: s.file, desc: &s.desc, limit: s.opts.Removals}
	s.reserve = memstore.NewReserve(reserveShare * s.opts.Limit)
	s.view.Store(newView(newOverlay(s.reserve, m.Stamp, s.lww)))
}

func (c *checkpointer) init() {
	c.times = metrics.NewTimes()
	c.wake = make(chan struct{}, 1)
	c.quit = make(chan struct{})
}

// wakeUp makes the goroutine look whether there is something to do.
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

// acquireFile returns the current file. The caller must release it.
func (s *Store) acquireFile() *opened {
	for {
		o := s.reading.Load()
		for n := o.refs.Load(); n > 0; n = o.refs.Load() {
			if o.refs.CompareAndSwap(n, n+1) {
				return o
			}
		}
	}
}

// readFile calls f with a transaction of the current file. Readers without runMu come by here or by
// begin: see tookPlace for those who do not.
func (s *Store) readFile(f func(tx *bolt.Tx) error) error {
	o := s.acquireFile()
	defer o.release()
	return o.file.View(f)
}

// Throttle waits while the file is behind; see "How writers are slowed down". The error says why
// the file cannot take the updates.
func (s *Store) Throttle() error {
	s.brake.slow()
	if s.brake.hasRoom() {
		return nil
	}
	return s.brake.wait(s.brake.hasRoom)
}

// ThrottleLarge is Throttle for a caller that is about to store a large value: everything in the
// overlays counts.
func (s *Store) ThrottleLarge() error { return s.throttleAt(wallAt) }

// ThrottleReplay is Throttle for the replay of the log at the start.
func (s *Store) ThrottleReplay() error { return s.throttleAt(replayWall) }

func (s *Store) throttleAt(times int64) error {
	if s.brake.hasRoomBelow(times) {
		return nil
	}
	return s.brake.wait(func() bool { return s.brake.hasRoomBelow(times) })
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

// Apply changes the active overlay, and freezes it when it has its limit. It implements
// store.Store.
func (s *Store) Apply(at update.Stamp, ups []update.Update) {
	var size int64
	for i := range ups {
		size += int64(len(ups[i].Key) + len(ups[i].Value))
	}
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	v := s.view.Load()
	memory, large := v.active().apply(at, ups, &s.prepared)
	if s.lww {
		s.noteClear(at, ups)
	}
	s.brake.note(memory, s.largeFrozen+large, size)
	if memory < s.opts.Limit || s.opts.ReadOnly {
		return
	}
	if len(v.frozen()) < mostFrozen {
		s.freezeOverlay()
	}
	s.cp.wakeUp()
}

// mostFrozen is how many overlays wait to be flushed at most; with more the active one grows.
const mostFrozen = replayWall

// freezeOverlay makes an empty overlay the active one and returns the overlay that was active
// before; it is frozen now and does not change any more. The caller holds applyMu, as Apply does,
// so the overlay's stamp is that of its last update.
func (s *Store) freezeOverlay() *overlay {
	old := s.view.Load()
	o := old.active()
	s.freezes++
	o.flush, o.clearedBy = s.freezes, s.cleared
	o.memory = o.tree.Bytes()
	s.view.Store(newView(append([]*overlay{newOverlay(s.reserve, o.stamp, s.lww)}, old.overlays...)...))
	old.release()
	s.brake.active.Store(0)
	s.countFrozen()
	return o
}

// countFrozen tells the brake what the frozen overlays take. The caller holds applyMu.
func (s *Store) countFrozen() {
	var memory int64
	s.largeFrozen = 0
	for _, o := range s.view.Load().frozen() {
		memory += o.memory
		s.largeFrozen += o.largeBytes
	}
	active := s.view.Load().active()
	active.mu.Lock()
	s.brake.large.Store(s.largeFrozen + active.largeBytes)
	active.mu.Unlock()
	s.brake.frozen.Store(memory)
	s.brake.adjusted = memory + s.brake.active.Load()
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
	s.view.Load().active().follow = s.followed
}

// Followed returns how far a master was followed; nil where nothing is known.
func (s *Store) Followed() []byte {
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	return s.followed.state
}

// Meta returns the file's description as of the last checkpoint.
func (s *Store) Meta() Meta { return s.desc.get() }
