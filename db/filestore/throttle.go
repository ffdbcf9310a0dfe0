package filestore

import (
	"sync"
	"sync/atomic"
	"time"
)

// # Why writers wait
//
// The memory of the overlays is bounded. When the file cannot keep up with the updates, writers
// wait before their updates begin (Store.Throttle), and hold no lock that a checkpoint needs. An
// example with the default limit of 64 MiB, clients that bring 30 MiB a second, and a disk that
// takes 20:
//
//	 0.0 s   the active overlay has 64 MiB: checkpoint 1 freezes it, 3.2 s of work
//	 3.2 s   checkpoint 1 ends, 96 MiB have come: checkpoint 2 freezes them, 4.8 s of work
//	 7.5 s   128 MiB, twice the limit, are in the active overlay: writers wait
//	 8.0 s   checkpoint 2 ends, checkpoint 3 freezes the 128 MiB, and writers go on
//
// So nobody waits in short bursts, and in the long run clients get as much as the disk takes. They
// wait for the next freeze, not for the end of the checkpoint that follows it. Three exceptions:
//   - A single large value may be larger than the limit, and small updates need not wait until the
//     disk has it. So small updates wait when they alone take twice the limit, or when they and
//     large values together take eight times the limit. A large value waits at twice the limit.
//   - A replay at the start may fill eight times the limit, since a start should not wait for what
//     a crash had left to do.
//   - When the file cannot be written, for example because the disk is full, Throttle returns the
//     error: waiting would last for ever. The frozen overlay stays, and another checkpoint is tried
//     every second.

// Writers wait when the active overlay has this many times the limit.
const (
	stallAt     = 2
	largeStall  = 8 // large values included
	replayStall = 8 // during a replay
)

// A throttle has the account of the active overlay's memory, and the writers that wait until a
// freeze has emptied it. It knows nothing of overlays and files: Apply notes the account, the
// checkpoint says when there is room again.
type throttle struct {
	limit int64        // overlay bytes that start a checkpoint
	ask   func()       // asks for a checkpoint
	bytes atomic.Int64 // memory of the active overlay
	large atomic.Int64 // the part of bytes that large values take

	mu      sync.Mutex    // guards the fields below; nothing else is locked under it
	room    *sync.Cond    // signalled by a freeze, and when a checkpoint ends, well or not
	err     error         // why the last checkpoint failed
	waiting int64         // writers that wait now
	stalls  int64         // waits so far
	stalled time.Duration // how long at least one writer has waited, the present wait left out
	began   time.Time     // when waiting was last 0 and somebody came
}

func (t *throttle) init(limit int64, ask func()) {
	t.limit, t.ask = limit, ask
	t.room = sync.NewCond(&t.mu)
}

// note takes down the memory of the active overlay after an update. The caller holds applyMu.
func (t *throttle) note(bytes, large int64) {
	t.large.Store(large)
	t.bytes.Store(bytes)
}

// hasRoom reports whether small updates may come in.
func (t *throttle) hasRoom() bool {
	all := t.bytes.Load()
	return all < stallAt*t.limit || all < largeStall*t.limit && all-t.large.Load() < stallAt*t.limit
}

// hasRoomBelow reports whether the active overlay, large values included, has less than so many
// times the limit.
func (t *throttle) hasRoomBelow(times int64) bool { return t.bytes.Load() < times*t.limit }

// wait waits until free returns true, and counts the wait as a stall. The error says why the file
// cannot take the updates.
func (t *throttle) wait(free func() bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting++; t.waiting == 1 {
		t.began = time.Now()
	}
	t.stalls++
	defer t.endWait()
	for !free() {
		if t.err != nil {
			return t.err
		}
		t.ask()
		t.room.Wait()
	}
	return nil
}

// endWait ends a stall. The caller holds mu.
func (t *throttle) endWait() {
	if t.waiting--; t.waiting == 0 {
		t.stalled += time.Since(t.began)
	}
}

// emptied says that a freeze has made an empty overlay the active one. The caller holds applyMu.
func (t *throttle) emptied() {
	t.bytes.Store(0)
	t.large.Store(0)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.room.Broadcast()
}

// checkpointed says that a checkpoint has ended: well, or with an error.
func (t *throttle) checkpointed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
	t.room.Broadcast()
}
