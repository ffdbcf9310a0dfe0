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
	"gotycoon/db/gate"
	"gotycoon/internal/netio"
	"gotycoon/internal/procinfo"
)

// roomEvery is how often the server looks at disk and memory.
const roomEvery = 100 * time.Millisecond

// ballastSize is the size of an object that is never touched, and so takes no memory of the
// machine. The collector runs when the heap has doubled. Records are kept outside of the heap, so
// without the ballast the heap would be so small that it would double a thousand times a second.
const ballastSize = 32 << 20

// leastPause is for how long updates are refused at least, so that refusals do not fill the log.
const leastPause = time.Second

const (
	smallestShare = 16       // -min-free keeps at most a sixteenth of a file system
	copies        = 3        // an update goes to the log once, and to pages that may be half full
	again         = 4        // updates are taken again a quarter of -min-free above -min-free
	memoryAgain   = 20       // memory must fall a twentieth below its limit before they are
	sizeAgain     = 64       // the databases must fall a 64th below -max-size before they are
	fragments     = 8        // the process may take an eighth more than the limit
	unused        = 16       // Go gets a sixteenth less, to collect before updates are refused
	leastGoMemory = 64 << 20 // least limit of Go: a collector that never rests helps nobody
)

// room refuses updates before there is no room for them, on the disk or in memory.
//
// The problem: an update is in the buffer of the update log and visible in memory before the log is
// written. So a write of the log that fails for want of space cannot be answered with an error:
// others have read the record, and a follower's position has passed the update's stamp. Cutting the
// log back was rejected: memory would be ahead of the log then, and a later update could depend on
// an update that a restart does not bring back. So a failed write is final and ends the server, and
// the server must refuse updates early enough that a write hardly ever fails.
//
// The rule: ten times a second the room looks at every directory that updates go to, and tells the
// databases how many bytes the logs may take until the next look. Each commit takes its bytes from
// this budget before its updates are appended, and refuses updates when the budget is used up, so
// that no burst passes between two looks. The budget is the free space of the directory less
//
//   - -min-free. Removals need log space too: they may use three quarters of -min-free.
//   - the bytes by which checkpoints still have to make files grow: twice what they write, since
//     pages may be half full, less the room inside the files. If these bytes were not kept free, a
//     checkpoint would take the last bytes from the log. Where files have more room inside than
//     they need, half of -min-free may go to the logs, which shrink with the next checkpoint.
//
// and a third of the rest, because an update takes its size three times: once in the log, and twice
// in the file, where pages may be half full.
//
// Example: 100 MiB are free, -min-free is 64 MiB, and files will grow by 10 MiB. 26 MiB are left,
// so the logs may take 26/3 = 8.7 MiB. When nothing is left updates are refused, files are
// checkpointed and private logs begin new segments, so that old segments can be removed; updates
// are taken again when 16 MiB are left, so that the server does not change its mind with each look.
//
// -memory and -max-size use the same gate. Updates on which other servers rely, in the services'
// database, pass it: see db.Options.Vital.
type room struct {
	roomOptions
	places []string
	since  time.Time // when updates were refused last because of a disk
	freed  time.Time // when Go was asked last to give memory back
	before int64     // Go's limit of memory when the server began
	goFor  int64     // the limit that limitGo gave to Go; 0: none yet

	ownLimit bool          // the environment has given Go a limit (GOMEMLIMIT)
	asked    *LimitsConfig // the limits from which memory and mayHave were made
	memory   int64         // LimitsConfig.memory
	mayHave  int64         // LimitsConfig.available

	mu  sync.Mutex // protects now
	now Pressure
}

// roomOptions are the parts that a room looks at, and tells how much they may grow.
type roomOptions struct {
	Catalog  *db.Catalog
	Requests *netio.Limits                 // of all connections
	Limits   *atomic.Pointer[LimitsConfig] // as they are in effect
	ReadOnly bool                          // no update comes, so the disk does not matter
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

// alarms returns which updates are refused at the moment, and why.
func (r *room) alarms(time.Time) []alarm {
	now := r.Pressure()
	held := ""
	if now.Disk {
		held = heldBy(r.Catalog.Log())
	}
	return now.alarms(*r.Limits.Load(), held)
}

// look looks at disk and memory, and tells databases and connections how much they may grow. It
// reports whether something has begun or ceased to be refused.
func (r *room) look() (changed bool) {
	c := *r.Limits.Load()
	was := r.Pressure()
	now := Pressure{Free: -1}
	left := gate.Limits{Disk: math.MaxInt64}
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
	left.Full, left.Over = now.Memory, now.Size
	r.Catalog.Gate().Set(left)
	r.Requests.SetClosed(now.Memory)
	r.mu.Lock()
	r.now = now
	r.mu.Unlock()
	return now.changed(was)
}

// recovery is how far a figure must be below its limit after it has been there.
func recovery(was bool, distance int64) int64 {
	if was {
		return distance
	}
	return 0
}

// lookAtDisk finds the directory with the least room.
func (r *room) lookAtDisk(minFree int64, was Pressure, now *Pressure, left *gate.Limits) {
	now.Free = math.MaxInt64
	needed, reusable := r.Catalog.FileSpace()
	if r.Catalog.Gate().RanOut() && !was.Disk {
		now.Disk = true // the budget was used up since the last look; there may be space again
	}
	now.Disk = now.Disk || was.Disk && time.Since(r.since) < leastPause
	for _, dir := range r.places {
		total, free, err := procinfo.Space(dir)
		if err != nil { // a checkpoint removes a directory and makes it again
			continue
		}
		least := min(minFree, total/smallestShare)
		space := free - least - needed + min(reusable, least/2)
		now.Disk = now.Disk || space < recovery(was.Disk, least/again)
		if space < left.Disk {
			now.Place, now.Least, now.Free = dir, least, free
			now.Asked, now.Total, now.Needed = minFree, total, needed
			left.Disk, left.Reserve = space, max(0, free-least/again)
			left.Keep = free - space + least/again
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
		left.Reserve -= left.Disk // the reserve begins where the budget of updates ends
	}
}

// lookAtMemory adds up what Go and the records take. Memory of removed records counts as free,
// though the process still has it, in pieces between other records. So the process may take an
// eighth more than the limit. While less than half of the limit is in use, the process may take
// any amount more, because new records take the free pieces first.
func (r *room) lookAtMemory(limit int64, was Pressure, now *Pressure) {
	records := r.Catalog.MemoryUsed()
	now.Used, now.Limit = goMemory()+records, limit
	now.Memory = now.Used >= limit-recovery(was.Memory, limit/memoryAgain) ||
		now.Used >= limit/2 && procinfo.Anonymous() >= limit+limit/fragments
	if now.Memory && time.Since(r.freed) >= leastPause {
		r.freed = time.Now()
		debug.FreeOSMemory() // the memory that Go does not need any more may be enough
	}
	r.limitGo(limit - limit/unused - records)
}

// limitGo has Go's collector keep within a number of bytes, unless the environment has a limit.
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

// limit returns LimitsConfig.memory.
func (r *room) limit(c LimitsConfig) int64 {
	r.ask(c)
	return r.memory
}

// available returns LimitsConfig.available.
func (r *room) available(c LimitsConfig) int64 {
	r.ask(c)
	return r.mayHave
}

// ask asks the system for the limits once after each change of the options: its files are too slow
// to be read ten times in a second.
func (r *room) ask(c LimitsConfig) {
	if r.asked == nil || *r.asked != c {
		r.asked, r.memory, r.mayHave = &c, c.memory(), c.available()
	}
}

// close gives Go the limit of memory back that it had.
func (r *room) close() {
	if r.goFor > 0 {
		debug.SetMemoryLimit(r.before)
	}
}

// goMemory returns the bytes that Go has taken from the system and not given back.
func goMemory() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return max(0, int64(samples[0].Value.Uint64())-int64(samples[1].Value.Uint64())-ballastSize)
}

// figures are the metrics of room.
func (r *room) figures() exporter.RoomStats {
	now, refused := r.Pressure(), r.Catalog.Gate().Refusals()
	return exporter.RoomStats{
		Place: now.Place, Free: now.Free, Least: now.Least,
		Reasons: []exporter.Refusing{
			{Reason: "disk", Now: now.Disk, Updates: refused.Disk},
			{Reason: "memory", Now: now.Memory, Updates: refused.Memory},
			{Reason: "size", Now: now.Size, Updates: refused.Size},
		},
	}
}
