package ulog

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"

	"gotycoon/internal/vfs"
)

var errClosed = errors.New("update log is closed")

// A Log is an update log open for writing. It may be used by many goroutines.
//
// Invariants:
//   - Stamps strictly increase in the order of Append calls, across segments and openings.
//   - The records of one Append are in one group.
//   - Nothing is acknowledged after err is set, and err is never cleared.
//   - synced <= written <= last, and the size in a header on disk never is more than synced.
//   - Every new stamp is greater than all stamps that followers were told (stamps.told), and than
//     the stamp that the header had when the log was opened. While the log is open the header
//     promises up to promiseAhead more than followers were told, and new stamps may lie below that.
//
// Lock order: leadership (see commit.go) -> writer.syncMu -> mu; holds.saving -> holds.removing ->
// mu, and holds.saving -> leadership.
type Log struct {
	folder
	id [16]byte

	acked  atomic.Uint64 // newest Stamp that Wait acknowledges; a copy of safe.last
	failed chan struct{} // closed when err is set: nothing is acknowledged from then on
	named  names         // see NameDatabases; not changed any more once there are updates
	flush  flusher
	writer writer
	aheads aheads
	holds  holds // who needs which segments

	observer  atomic.Pointer[Observer]  // nil: nobody measures
	confirmer atomic.Pointer[Confirmer] // for clients that ask for it; nil: there is none
	usual     atomic.Pointer[Confirmer] // the same for all others; nil: their answers do not wait

	removed atomic.Int64 // segments since Open

	mu      sync.Mutex    // guards the fields below
	stamps                // given out and promised
	pending pending       // records that no group has taken yet
	bytes   int64         // record bytes appended since Open
	update  made          // the newest update
	written tail          // end of the groups written
	synced  tail          // end of the groups synced
	safe    tail          // written or synced, by mode, as of the last group without an error
	queue   queue         // who writes, and who waits for the writer
	changed chan struct{} // closed when safe grows; nil while no reader waits
	newest  newest        // groups in memory, for readers
	note    note          // of the newest position record; its state is replaced, never changed
	closed  bool
	err     error // first failed write or sync
}

// stamps are the bounds of the stamps to come. They are guarded by Log.mu.
type stamps struct {
	last Stamp // newest stamp given out
	past Stamp // stamps up to here are not given out any more: promised, or used by another server

	// See promise.go.
	told     Stamp // newest stamp that followers were told
	promised Stamp // what the next header promises
	kept     Stamp // what the header on disk promises

	promising int // goroutines that wait for a promise to be on the disk
}

// A writer owns the newest segment: its file, its headers and the way to the next segment.
type writer struct {
	log *Log

	next    atomic.Bool // the next group begins a segment
	stated  note        // what the newest written position record says; used by the leader
	company company     // used by the leader
	early   tail        // up to where the flusher was asked to have the disk begin; used by the leader
	room    tail        // where the file of a segment ends, if zeros were written there; used by the leader
	zeros   []byte      // for room; nil: none was made yet

	syncMu sync.Mutex // held over fsync, header writes and rotation
	f      vfs.File   // the newest segment; changed by the leader under syncMu
	headed header     // the segment's header as last written; guarded by syncMu
	sealed header     // the segment's header as last synced; guarded by syncMu
}

// phase says what the leader does.
type phase int

const (
	idle      phase = iota // there is no leader
	gathering              // the leader has not yet taken the pending records
	writing                // the leader writes
)

// A queue holds the goroutines that wait for a group. All fields are guarded by Log.mu.
//
// One channel for each group, closed when the group is done, wakes all its waiters at once, and
// each runs on without taking a lock.
type queue struct {
	phase   phase
	taken   Stamp         // last stamp of the group being written
	current chan struct{} // closed when the group being written is done; nil: nobody waits
	next    chan struct{} // the same for the group being filled
	elected bool          // a goroutine waits on turn, to lead the group being filled
	turn    chan struct{} // hands over the leadership; buffers one
}

// A flusher owns the goroutine that writes what nobody waits for and keeps the disk at most an
// interval behind. It is started by Prepared.Begin and ended by Close.
type flusher struct {
	kicked chan struct{}
	filled chan struct{} // much was written that the disk has not begun with
	sync   atomic.Bool   // a kick asks for a sync as well
	stop   chan struct{}
	done   chan struct{}
}

// kick asks for pending records to be written now.
func (fl *flusher) kick() {
	select {
	case fl.kicked <- struct{}{}:
	default:
	}
}

// kickSync asks for what is written to be synced now.
func (fl *flusher) kickSync() {
	fl.sync.Store(true)
	fl.kick()
}

// aheads lets one goroutine at a time write a value ahead.
type aheads struct {
	turn chan struct{} // holds a token while a goroutine writes a value ahead
	made int           // values written ahead, for the names of their files; guarded by turn
}

// Last returns the newest stamp given out, or found in the log by Open.
func (l *Log) Last() Stamp {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// NewestUpdate returns the stamp of the newest update in the log and the server that made it. The
// stamp is 0 where the log has no update, or has updates only in segments before the one that was
// the newest when the log was opened. Last may be greater: stamps are given out without updates
// too.
func (l *Log) NewestUpdate() (Stamp, uint16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.update.at, l.update.by
}

// Remembered returns the state of the newest position record and the record's stamp, nil where
// there is none. After Open the stamp may be that of the group which repeats the state: greater
// than the stamp of the first record with the state, and still less than that of any state
// remembered later.
func (l *Log) Remembered() (state []byte, at Stamp) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.note.state), l.note.at
}

// Bytes returns how many bytes of records were appended since Open.
func (l *Log) Bytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// safeTail returns up to where readers may read.
func (l *Log) safeTail() tail {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.safe
}

// Err returns the error of the write or fsync that failed, or nil.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// ID returns the identity of the log: 16 random bytes, chosen when its directory was first opened
// by a Log.
func (l *Log) ID() [16]byte { return l.id }

// Dir returns the directory as given to Open.
func (l *Log) Dir() string { return l.dir }

// Measure has the log measured from now on, by one Observer at a time.
func (l *Log) Measure(o *Observer) { l.observer.Store(o) }

// Observer returns the Observer that Measure was given last, or nil.
func (l *Log) Observer() *Observer { return l.observer.Load() }

// SetConfirmer has answers to clients wait for c: those of clients that ask for it, and where usual
// is true all others too.
func (l *Log) SetConfirmer(c Confirmer, usual bool) {
	l.confirmer.Store(&c)
	if usual {
		l.usual.Store(&c)
	}
}

// Confirmer returns what the answer to a client has to wait for besides the log, or nil. asks says
// that the client asks for other servers itself.
func (l *Log) Confirmer(asks bool) Confirmer {
	c := l.usual.Load()
	if asks {
		c = l.confirmer.Load()
	}
	if c == nil {
		return nil
	}
	return *c
}
