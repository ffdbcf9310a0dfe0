package filestore

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// # How writers are slowed down
//
// Two things may grow when clients bring updates faster than the file takes them: the memory of the
// overlays, and the runs, which make readers slower and the file larger. A writer that is stopped
// dead until there is room again waits for seconds. So writers are slowed down early and little by
// little, to the rate at which the file takes updates:
//
//	fill   0 until the overlays have two times the limit and a merge is due; 1 at four times the
//	       limit, or when the runs have twice as much (runList.debt); the greater one counts
//	drain  bytes of updates per second that the file takes: of a second, flushes and merges share
//	       the time, so drain = 1 / (1/flush + 1/merge), with the rates of the latest ones
//	rate   drain × 4^(1−2·fill): four times the drain at the first sign of debt, the drain when
//	       the room is half full, a quarter of the drain when it is nearly full
//
// An example: the file takes 20 MB a second, clients bring 60. The debt grows until the fill is
// 0.1, from where on the rate is less than what they bring. The fill settles at 0.5, where as much
// comes as goes. When the clients pause, the debt goes down and the brake with it.
//
// Each update is charged to the clock of the brake (next): its bytes, divided by the rate. A writer
// waits until the time has come to the clock, before its update begins and without a lock. All wait
// for the same clock, so the brake is even over clients: each gets an update in, then all wait for
// what they have brought together. A wait of less than slack is left out and stays in the clock.
//
// The memory is bounded all the same. Writers stop when the overlays have wallAt times the limit,
// and go on when an overlay has been flushed. Three exceptions:
//   - A single large value may be larger than the limit, and small updates need not wait until the
//     disk has it. So small updates stop when they alone take wallAt times the limit, or when they
//     and large values together take twice as much.
//   - A replay at the start is not slowed down, and may fill replayWall times the limit, since a
//     start should not wait for what a crash had left to do.
//   - When the file cannot be written, for example because the disk is full, Throttle returns the
//     error: waiting would last for ever. The frozen overlays stay, and another flush is tried
//     every second.
//
// Taken from pebble and RocksDB: the delay before the update, and that debt has two measures. Not
// taken: their rate is a setting, which is wrong on any other disk, or a step function of the
// number of files, which makes the rate swing. Rejected: a queue of the writers in which each waits
// for its turn; it costs a wake-up for each update, and closed loops of clients are even without
// it.

const (
	brakeAt    = 2 // times the limit at which the brake begins
	wallAt     = 4 // times the limit at which writers stop
	largeWall  = 8 // the same, large values included
	replayWall = 8 // the same, during a replay

	slack      = time.Millisecond
	mostWait   = time.Second // for the clock: a disk that hangs stops nobody for longer while memory has room
	mostCharge = 1 << 20     // bytes of an update that are charged
)

// A brake has the account of what the file has not taken yet. It knows nothing of overlays and
// files: Apply and the checkpoint tell it.
type brake struct {
	limit  int64        // overlay bytes that start a checkpoint
	ask    func()       // asks for a checkpoint
	active atomic.Int64 // memory of the active overlay
	frozen atomic.Int64 // memory of the frozen ones
	large  atomic.Int64 // the part of both that large values take
	runs   atomic.Int64
	debt   atomic.Uint64 // of the runs, see runList.debt, as the bits of a float64
	spent  atomic.Int64  // bytes of updates that are not charged yet
	rate   atomic.Uint64 // bytes per second, as the bits of a float64; 0: no brake

	adjusted int64 // memory at which note last found the rate; guarded by applyMu

	mu       sync.Mutex    // guards the fields below; nothing else is locked under it
	room     *sync.Cond    // signalled when a flush ends, well or not
	next     time.Time     // the clock of the brake
	flush    speed         // of flushes
	merge    speed         // of merges
	err      error         // why the last checkpoint failed
	unmerged error         // why the last piece of a merge failed
	waiting  int64         // writers that wait now
	stalls   int64         // waits so far
	stalled  time.Duration // how long at least one writer has waited, the present wait left out
	began    time.Time     // when waiting was last 0 and somebody came
}

// speed is the latest rate of some work, in bytes per second; 0: unknown.
type speed float64

func (s *speed) learn(size int64, took time.Duration) {
	if size <= 0 || size < 64<<10 && took < 10*time.Millisecond { // too little to tell
		return
	}
	now := speed(float64(size) / took.Seconds())
	if *s == 0 {
		*s = now
		return
	}
	*s += (now - *s) / 4
}

func (b *brake) init(limit int64, ask func()) {
	b.limit, b.ask = limit, ask
	b.room = sync.NewCond(&b.mu)
}

// note takes down the memory of the active overlay after updates of so many bytes. The caller holds
// applyMu.
func (b *brake) note(memory, large, updates int64) {
	b.active.Store(memory)
	b.large.Store(large)
	b.spent.Add(min(updates, mostCharge))
	if all := b.memory(); all > brakeAt*b.limit && all-b.adjusted > b.limit/16 {
		b.adjusted = all
		b.adjust()
	}
}

// memory returns the bytes of all overlays.
func (b *brake) memory() int64 { return b.active.Load() + b.frozen.Load() }

// hasRoom reports whether small updates may come in.
func (b *brake) hasRoom() bool {
	all := b.memory()
	return all < wallAt*b.limit || all < largeWall*b.limit && all-b.large.Load() < wallAt*b.limit
}

// hasRoomBelow reports whether the overlays, large values included, have less than so many times
// the limit.
func (b *brake) hasRoomBelow(times int64) bool { return b.memory() < times*b.limit }

// fill returns how far the debt is between the first sign of it and the wall.
func (b *brake) fill() float64 {
	memory := float64(b.memory()-b.large.Load())/float64(b.limit) - brakeAt
	return min(1, max(0, memory/(wallAt-brakeAt), b.runDebt()-1))
}

// runDebt is the debt of the runs, see runList.debt.
func (b *brake) runDebt() float64 { return math.Float64frombits(b.debt.Load()) }

// adjust finds the rate anew.
func (b *brake) adjust() {
	fill := b.fill()
	b.mu.Lock()
	defer b.mu.Unlock()
	var rate float64
	if fill > 0 && b.flush > 0 {
		each := 1 / float64(b.flush)
		if b.merge > 0 {
			each += 1 / float64(b.merge)
		}
		rate = math.Pow(4, 1-2*fill) / each
	}
	if before := b.rate.Swap(math.Float64bits(rate)); before == 0 {
		b.spent.Store(0)
	}
	if rate == 0 {
		b.next = time.Time{}
	}
}

// slow waits until the clock of the brake has come.
func (b *brake) slow() {
	rate := math.Float64frombits(b.rate.Load())
	if rate == 0 {
		return
	}
	b.mu.Lock()
	now := time.Now()
	if b.next.Before(now) {
		b.next = now
	}
	wait := b.next.Sub(now).Seconds() + float64(b.spent.Swap(0))/rate
	b.next = now.Add(time.Duration(min(wait, mostWait.Seconds()) * float64(time.Second)))
	b.sleep(b.next.Sub(now))
}

// sleep waits for the clock and counts the wait as a stall. The caller holds mu, which sleep gives
// away.
func (b *brake) sleep(wait time.Duration) {
	if wait < slack {
		b.mu.Unlock()
		return
	}
	b.beginWait()
	b.mu.Unlock()
	time.Sleep(wait) //lint:sleep the clock is what is waited for
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endWait()
}

// wait waits until free returns true. The error says why the file cannot take the updates.
func (b *brake) wait(free func() bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.beginWait()
	defer b.endWait()
	for !free() {
		if b.err != nil {
			return b.err
		}
		b.ask()
		b.room.Wait()
	}
	return nil
}

// beginWait begins a stall. The caller holds mu.
func (b *brake) beginWait() {
	if b.waiting++; b.waiting == 1 {
		b.began = time.Now()
	}
	b.stalls++
}

// endWait ends a stall. The caller holds mu.
func (b *brake) endWait() {
	if b.waiting--; b.waiting == 0 {
		b.stalled += time.Since(b.began)
	}
}

// flushed says that a flush has ended: well, or with an error.
func (b *brake) flushed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
	b.room.Broadcast()
}

// merged says that a piece of a merge has ended: well, or with an error.
func (b *brake) merged(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unmerged = err
}

// worked says how long a flush or a merge took for so many bytes of updates.
func (b *brake) worked(s *speed, size int64, took time.Duration) {
	b.mu.Lock()
	s.learn(size, took)
	b.mu.Unlock()
	b.adjust()
}
