package ulog

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"gotycoon/internal/vfs"
)

const (
	kickSize = 4 << 20 // pending bytes from which on nobody need wait for them to be written
	keepSize = 8 << 20 // larger buffers are not used again

	quickSync = 8 << 20 // bytes that are synced while everybody waits
	growOn    = 2       // a segment may grow to so many times the limit while it is being synced
)

// A Log is an update log open for writing. It may be used by many goroutines.
//
// Invariants:
//   - stamps strictly increase in the order of Append calls, across segments and openings;
//   - the records of one Append are in one group;
//   - nothing is acknowledged after err is set, and err is never cleared;
//   - synced <= written <= last, and the size in a header on disk never is more than synced;
//   - every stamp given out is greater than what the header on disk promises.
//
// Lock order: leadership (see commit.go) -> syncMu -> mu; holds.removing -> mu.
type Log struct {
	dir    string
	opts   Options
	fs     vfs.FS
	logger *slog.Logger
	id     [16]byte
	gap    *fresh // where Open goes on when the newest segment had lost updates; nil otherwise and afterwards

	acked  atomic.Uint64 // newest Stamp that Wait acknowledges; a copy of safe.last
	failed chan struct{} // closed when err is set
	next   atomic.Bool   // the next group begins a segment
	flush  flusher

	observer atomic.Pointer[Observer] // nil: nobody measures
	holds    holds                    // who needs which segments

	syncMu sync.Mutex // held over fsync, header writes and rotation
	f      vfs.File   // the newest segment; changed by the leader under syncMu
	headed header     // what its header says; guarded by syncMu
	sealed header     // what its header says on disk; guarded by syncMu
	stated note       // of the newest position record that is written; used by the leader

	aheadTurn chan struct{} // has room for one: whoever writes a value ahead
	aheads    int           // values written ahead, for the names of their files; used by whoever has the turn

	mu       sync.Mutex    // guards the fields below
	pending  []byte        // encoded records not yet taken into a group
	large    []largeValue  // that they refer to
	referTo  int           // bytes of them
	waiting  []group       // to be written before the pending records: a large value has a group of its own, see cutLocked
	count    uint32        // records in pending
	notes    uint32        // follow records among them
	spare    []byte        // empty buffer to become pending
	bytes    int64         // record bytes appended since Open
	last     Stamp         // newest stamp given out
	update   made          // the newest update
	past     Stamp         // newest stamp not to be given out any more: it was promised, or another server has had it
	told     Stamp         // newest stamp promised, see promise.go
	promised Stamp         // what headers promise
	kept     Stamp         // what the header on disk promises
	written  tail          // end of the groups written
	synced   tail          // end of the groups synced
	safe     tail          // written or synced, by mode, as of the last group without an error
	queue    queue         // who writes, and who waits for it
	changed  chan struct{} // closed when safe grows; nil while no reader waits
	newest   newest        // groups in memory, for readers
	follow   note          // of the newest position record; its state is replaced, never changed
	first    Stamp         // of the first pending record
	closed   bool
	err      error // first failed write or sync
}

// made says when an update was made, and by which server.
type made struct {
	at Stamp
	by uint16
}

// tail is a position between two groups.
type tail struct {
	seg  uint64 // number of the segment
	off  int64  // in the segment
	last Stamp  // newest stamp in front of it

	records uint64 // updates written since Open
}

// Append gives updates consecutive stamps and returns the last one: that of the i-th of n is so much less as there are behind it.
// They will be written as a whole or not at all. It does no I/O, so the caller may hold its own lock over Append and the change to
// its memory: both then happen in the same order. The updates are copied. Without updates it returns Last.
//
// Updates with an Origin get stamps greater than those that they had there.
func (l *Log) Append(ups []Update) (Stamp, error) { return l.AppendReplicated(ups, nil) }

// AppendReplicated is Append for the updates of another server, together with what is to be remembered about it; f may be nil. There need
// not be updates. The record that holds f comes right before them: its stamp is as much less than the one returned as there are updates.
func (l *Log) AppendReplicated(ups []Update, f *Position) (Stamp, error) {
	size, err := encodedSize(ups)
	if err != nil {
		return 0, err
	}
	msg, newest, err := encodePosition(ups, f)
	if err != nil {
		return 0, err
	}
	now := StampAt(l.opts.Now())
	l.mu.Lock()
	if err := l.usableLocked(); err != nil {
		l.mu.Unlock()
		return 0, err
	}
	l.past = max(l.past, newest)
	refer := referred(ups)
	if refer > 0 {
		l.cutLocked()
	}
	l.referTo += refer
	l.pending = slices.Grow(l.pending, size-refer+len(msg)+frameSize+commitSize)
	if l.count == 0 {
		l.first = max(l.last, l.past, now-1) + 1
	}
	if msg != nil {
		l.nextLocked(now)
		l.pending = appendFrameHead(l.pending, l.last, len(msg))
		l.pending = append(append(l.pending, msg...), endMark)
		l.count++
		l.notes++
		size += frameSize + len(msg)
		if f != nil {
			l.follow = note{bytes.Clone(f.State), l.last}
		}
	}
	for i := range ups {
		l.nextLocked(now)
		l.appendLocked(&ups[i])
	}
	if n := len(ups); n > 0 {
		l.update = made{l.last, ups[n-1].SID}
	}
	l.count += uint32(len(ups))
	l.bytes += int64(size)
	last, kick := l.last, len(l.pending)+l.referTo >= kickSize && l.queue.phase == idle
	if refer > 0 {
		l.cutLocked()
	}
	l.mu.Unlock()
	if kick {
		l.flush.kick()
	}
	return last, nil
}

// nextLocked gives out a stamp. The caller holds mu.
func (l *Log) nextLocked(now Stamp) { l.last = max(l.last+1, l.past+1, now) }

// encodedSize returns the size of the records of updates, or why they cannot be logged.
func encodedSize(ups []Update) (int, error) {
	size := 0
	for i := range ups {
		n := messageSize(&ups[i])
		if ups[i].DBID == commitDBID {
			return 0, ErrReservedDB
		}
		if int64(n) > maxMessage {
			return 0, ErrTooLarge
		}
		size += frameSize + n
	}
	return size, nil
}

// Tick takes the next stamp without a record, and returns it.
func (l *Log) Tick() Stamp {
	now := StampAt(l.opts.Now())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nextLocked(now)
	return l.last
}

// Last returns the newest stamp given out, or found in the log by Open.
func (l *Log) Last() Stamp {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// NewestUpdate returns the stamp of the newest update in the log and the server that has made it. The stamp is 0 where the log has none, or
// only in segments before the one that was the newest when it was opened. Last may be greater: stamps are given out without updates too.
func (l *Log) NewestUpdate() (Stamp, uint16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.update.at, l.update.by
}

// Bytes returns how many bytes of records were appended since Open.
func (l *Log) Bytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// ID returns the identity of the log: 16 bytes drawn when its directory was first opened by a Log.
func (l *Log) ID() [16]byte { return l.id }

// Dir returns the directory as given to Open.
func (l *Log) Dir() string { return l.dir }

// Failed returns a channel that is closed at the first write or fsync that fails. From then on nothing is acknowledged.
func (l *Log) Failed() <-chan struct{} { return l.failed }

// Err returns the error of the write or fsync that failed, or nil.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// usableLocked returns why nothing can be appended. The caller holds mu.
func (l *Log) usableLocked() error {
	if l.err != nil {
		return l.err
	}
	if l.closed {
		return ErrClosed
	}
	return nil
}

// fail makes err the end of the log, unless an earlier error was, and returns that which is.
func (l *Log) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		close(l.failed)
		l.wakeReadersLocked()
	}
	return l.err
}

// Close writes and syncs everything appended, updates the header and releases the directory. Further calls return ErrClosed.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.closed = true
	last := l.last
	l.wakeReadersLocked()
	l.mu.Unlock()

	l.flush.end()
	l.endPromises()
	err := l.settle(last)
	l.mu.Lock()
	for i := range l.waiting {
		l.waiting[i].abandon()
	}
	l.mu.Unlock()
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	if cerr := l.f.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("close update log: %w", cerr)
	}
	return err
}

// settle makes the log end on disk at stamp last, header included.
func (l *Log) settle(last Stamp) error {
	if err := l.SyncTo(last); err != nil {
		return err
	}
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	return l.syncHeaderLocked()
}
