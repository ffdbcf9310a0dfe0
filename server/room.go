package server

import (
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/admin/exporter"
	"gotycoon/db"
	"gotycoon/internal/netio"
	"gotycoon/internal/procinfo"
)

// roomEvery is how often the server looks at disk and memory. In between the databases count what they write to logs.
const roomEvery = 100 * time.Millisecond

// ballastSize is the size of an object that is never touched, and so takes no memory of the machine.
// Records are kept outside of the collector's heap, which is left so small that the collector would
// run a thousand times per second: it waits for the heap to double.
const ballastSize = 32 << 20

// leastPause is for how long updates are refused at least, so that the log is not full of it.
const leastPause = time.Second

const (
	smallestShare = 16       // of a file system: -min-free keeps no more than this part of it
	copies        = 3        // an update goes to the log, and to pages of a file that may be half full
	again         = 4        // a quarter more than -min-free must be free before updates are taken again; removals leave a quarter
	memoryAgain   = 20       // the memory must fall by a twentieth
	sizeAgain     = 64       // the databases by a 64th
	fragments     = 8        // the process may take an eighth more than what is counted
	unused        = 16       // of the memory: the collector is to begin in earnest before updates are refused
	leastGoMemory = 64 << 20 // GOMEMLIMIT is never below: collecting all the time would help nobody
)

// room looks after disk and memory: updates are refused before there is no room for them. Once an update is in memory and waits for the
// log, nobody could take it back.
type room struct {
	roomOptions
	places []string
	since  time.Time // when updates were refused last because of a disk
	freed  time.Time // when Go was asked last to give memory back
	before int64     // what Go had been told when the server began
	goFor  int64     // what Go was told it may use; 0: nothing yet

	ownLimit bool          // the environment has told Go (GOMEMLIMIT)
	asked    *LimitsConfig // what the next two are of
	memory   int64         // see LimitsConfig.memory
	mayHave  int64         // see LimitsConfig.available

	mu  sync.Mutex // protects now
	now Pressure
}

// roomOptions are the parts that a room looks at, and tells how much they may grow.
type roomOptions struct {
	Catalog  *db.Catalog
	Requests *netio.Limits                 // of all connections
	Limits   *atomic.Pointer[LimitsConfig] // as they are in effect
	ReadOnly bool                          // no update comes, so the disk does not matter
	Log      logger
}

func newRoom(o roomOptions) *room {
	_, own := os.LookupEnv("GOMEMLIMIT")
	return &room{roomOptions: o, places: o.Catalog.Places(), now: Pressure{Free: -1}, ownLimit: own}
}

// Pressure returns what is refused at the moment, and the figures behind it.
func (r *room) Pressure() Pressure {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now
	now.Held, now.Denied = r.Requests.Held(), r.Requests.Denied()
	return now
}

// refusals returns which updates are refused at the moment, and why.
func (r *room) refusals() []string { return r.Pressure().reasons(*r.Limits.Load()) }

// look tells databases and connections how much they may grow.
func (r *room) look() {
	c := *r.Limits.Load()
	was := r.Pressure()
	now := Pressure{Free: -1}
	left := db.Room{Disk: math.MaxInt64}
	if c.MinFree > 0 && len(r.places) > 0 && !r.ReadOnly {
		r.lookAtDisk(c.MinFree, was, &now, &left)
	}
	if limit := r.limit(c); limit > 0 {
		r.lookAtMemory(limit, was, &now)
	} else if available := r.available(c); available > 0 {
		r.limitGo(available - available/unused - r.Catalog.MemoryUsed())
	}
	if c.MaxSize > 0 {
		now.Records = r.Catalog.RecordBytes()
		now.Size = now.Records >= c.MaxSize-recovery(was.Size, c.MaxSize/sizeAgain)
	}
	now.begin(was)
	left.Full, left.Over = now.Memory, now.Size
	r.Catalog.SetRoom(left)
	r.Requests.SetClosed(now.Memory)
	r.mu.Lock()
	r.now = now
	r.mu.Unlock()
	now.log(r.Log, was, c, r.Catalog.Refusals())
}

// recovery is how far a figure must be below its limit after it has been there.
func recovery(was bool, distance int64) int64 {
	if was {
		return distance
	}
	return 0
}

// lookAtDisk finds the place with the least room. What files are still to take from memory has to fit too: a checkpoint that fails
// would leave nothing for the log. Where files have room inside, half of what is kept free may go to logs, which shrink with the next
// checkpoint.
func (r *room) lookAtDisk(minFree int64, was Pressure, now *Pressure, left *db.Room) {
	now.Free = math.MaxInt64
	needed, reusable := r.Catalog.FileSpace()
	if r.Catalog.RanOut() && !was.Disk {
		now.Disk = true // between two looks, and maybe there is space again already
	}
	now.Disk = now.Disk || was.Disk && time.Since(r.since) < leastPause
	for _, dir := range r.places {
		total, free, err := procinfo.Space(dir)
		if err != nil { // removed at a checkpoint, and comes again
			continue
		}
		least := min(minFree, total/smallestShare)
		space := free - least - needed + min(reusable, least/2)
		now.Disk = now.Disk || space < recovery(was.Disk, least/again)
		if space < left.Disk {
			now.Place, now.Least, now.Free = dir, least, free
			now.Asked, now.Total, now.Needed = minFree, total, needed
			left.Disk, left.Reserve = space, max(0, free-least/again)
		}
	}
	if left.Disk != math.MaxInt64 {
		left.Disk /= copies
	}
	if now.Disk {
		if !was.Disk {
			r.since = time.Now()
		}
		left.Disk = min(left.Disk, -1)
		r.Catalog.Shrink()
	}
	if left.Disk != math.MaxInt64 {
		left.Reserve -= left.Disk // what removals may take counts from there
	}
}

// lookAtMemory adds up what Go and the records take. Memory that removals have freed in between others counts as free, though the
// process still has it; so the process may have a little more, and much more
// when less than half is in use: what is free there is taken first.
func (r *room) lookAtMemory(limit int64, was Pressure, now *Pressure) {
	records := r.Catalog.MemoryUsed()
	now.Used, now.Limit = goMemory()+records, limit
	now.Memory = now.Used >= limit-recovery(was.Memory, limit/memoryAgain) ||
		now.Used >= limit/2 && procinfo.Anonymous() >= limit+limit/fragments
	if now.Memory && time.Since(r.freed) >= leastPause {
		r.freed = time.Now()
		debug.FreeOSMemory() // what Go does not need any more may be enough
	}
	r.limitGo(limit - limit/unused - records)
}

// limitGo has Go's collector keep within a number of bytes, unless the environment says how many they are.
func (r *room) limitGo(bytes int64) {
	g := max(bytes, leastGoMemory)
	if r.ownLimit || g>>20 == r.goFor>>20 {
		return
	}
	if before := debug.SetMemoryLimit(g + ballastSize); r.goFor == 0 {
		r.before = before
	}
	r.goFor = g
}

// limit returns LimitsConfig.memory, and available LimitsConfig.available, as they are since the options were read last: the files of
// the system are not asked ten times in a second.
func (r *room) limit(c LimitsConfig) int64 {
	r.ask(c)
	return r.memory
}

func (r *room) available(c LimitsConfig) int64 {
	r.ask(c)
	return r.mayHave
}

func (r *room) ask(c LimitsConfig) {
	if r.asked == nil || *r.asked != c {
		r.asked, r.memory, r.mayHave = &c, c.memory(), c.available()
	}
}

// close gives Go the limit back that it had.
func (r *room) close() {
	if r.goFor > 0 {
		debug.SetMemoryLimit(r.before)
	}
}

// goMemory is what Go has taken from the system and not given back.
func goMemory() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return max(0, int64(samples[0].Value.Uint64())-int64(samples[1].Value.Uint64())-ballastSize)
}

// figures are the metrics of room.
func (r *room) figures() exporter.RoomStats {
	now, refused := r.Pressure(), r.Catalog.Refusals()
	return exporter.RoomStats{
		Place: now.Place, Free: now.Free, Least: now.Least,
		Reasons: []exporter.Refusing{
			{Reason: "disk", Now: now.Disk, Updates: refused.Disk},
			{Reason: "memory", Now: now.Memory, Updates: refused.Memory},
			{Reason: "size", Now: now.Size, Updates: refused.Size},
		},
	}
}
