package server

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gotycoon/db"
	"gotycoon/internal/netio"
)

const (
	// processorsEvery is how often the server looks whether cold pages were touched, and whether a
	// window of crowd is over.
	processorsEvery = 50 * time.Millisecond

	// So many pages that had to be read between two looks are cold ones of the database. A few are
	// pages of the program, which is read as it is used.
	coldPages = 5

	// coldFor is how long the spare processors stay after the latest cold pages.
	coldFor = 5 * time.Second

	worksOn = 500 * time.Millisecond // behind a checkpoint, it counts as one that works
)

// processors sets how many goroutines Go runs at once (GOMAXPROCS).
//
// Database files are mapped into memory. A goroutine that touches a page which is not in memory
// waits for the disk, and Go takes its processor for busy meanwhile. So a server that reads from
// the disk has a quarter more processors than the machine, and at least one more; four times as
// many cost a quarter of the requests per second, in looking for work.
//
// A server whose pages are all in memory must not have the spare ones, and it has even fewer where
// others use the cores: see crowd, which says why. So the spare processors exist only while pages
// have to be read: the system counts such pages as major faults of the process, but for those that
// a scan has asked for and then waits for. Without spare processors a backup of a
// cold file keeps one of two waiting, and the first cold page of a client the other one.
//
// A checkpoint has a processor of its own while it works, as long as there are no more of them than
// the machine has cores.
//
// With -oas there are spare processors, too. The leader of a group waits in an fsync most of the
// time, with a processor that Go takes away from it only after a while. But where the disk is so
// quick that the leader of a loop of connections waits for it itself (netio, syncs.go), nobody has
// anything to do meanwhile, and threads that look for work would only get into its way. See calm
// for a server that has one processor then.
type processors struct {
	syncEach bool                        // groups wait for the disk
	onDisk   bool                        // there may be spare processors
	usage    func() usage                // of the process so far
	asked    func() uint64               // pages that scans have asked the system for so far; nil: there are no files
	cores    func() (cores, error)       // figures of the threads so far
	syncing  func() netio.Syncing        // of leaders of loops, so far
	number   func() int                  // of processors now
	change   func(spare bool, fewer int) // sets the number
	beats    *pace                       // of calls of beat

	mu    sync.Mutex    // protects the fields below
	spare bool          // there are spare processors
	fewer int           // processors given up to others
	known usage         // at the latest look
	at    time.Time     // of the latest look
	until time.Time     // the spare processors stay until then
	syncs netio.Syncing // at the latest look
	led   time.Time     // leaders of loops wait for the disk for a part of the time, until then
	crowd crowd
	calm  calm

	works  atomic.Int32  // checkpoints that work
	worked atomic.Int64  // when the latest one ended, as nanoseconds since 1970
	begins chan struct{} // of one: a checkpoint has begun
}

// usage is what the system counts of this process.
type usage struct {
	faults   int64         // pages that were read from the disk because they were touched; in known, or asked for by a scan
	ran      time.Duration // on all cores
	switches int64         // of threads that had to wait
}

// newProcessors returns nil if the environment has a GOMAXPROCS, which stays as it is.
// Loops may begin later.
func newProcessors(syncEach bool, loops func() *netio.Loops) *processors {
	if _, set := os.LookupEnv("GOMAXPROCS"); set {
		return nil
	}
	p := &processors{syncEach: syncEach, beats: newPace(), begins: make(chan struct{}, 1)}
	p.usage, p.change = usageSoFar, useProcessors
	p.cores = figuresWith(loops)
	p.syncing = func() netio.Syncing { return loops().Syncing() }
	p.number = func() int { return runtime.GOMAXPROCS(0) }
	return p
}

// work notes that a checkpoint begins to work, or ends it with -1. It never waits: a change of the
// number does, for a collection of garbage for example. A nil *processors does nothing.
func (p *processors) work(change int) {
	if p == nil {
		return
	}
	if change < 0 {
		p.worked.Store(time.Now().UnixNano())
	}
	if p.works.Add(int32(change)); change < 0 {
		return
	}
	select {
	case p.begins <- struct{}{}:
	default:
	}
}

// working returns how many checkpoints work, or have a moment ago: often the next one follows.
func (p *processors) working(now time.Time) int {
	works := int(p.works.Load())
	since := now.UnixNano() - p.worked.Load() // less than 0 if the clock was set back
	if works == 0 && since >= 0 && since < int64(worksOn) {
		return 1
	}
	return works
}

// attend gives a checkpoint its processor.
func (p *processors) attend(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.give(now)
	p.listen(now)
}

// give gives up the processors that the crowd is to have. The caller holds mu.
func (p *processors) give(now time.Time) { p.set(p.spare, max(0, p.crowd.given-p.working(now))) }

// useProcessors sets the number that Go chooses, which follows the machine and the limits of a
// container, with the spare processors, or with fewer.
func useProcessors(spare bool, fewer int) {
	runtime.SetDefaultGOMAXPROCS()
	switch n := runtime.GOMAXPROCS(0); {
	case spare:
		runtime.GOMAXPROCS(n + max(1, n/4))
	case fewer > 0:
		runtime.GOMAXPROCS(max(1, n-fewer))
	}
}

// watch has look take care of the pages of the databases' files. look is not called before. A nil
// *processors does nothing.
func (p *processors) watch(c *db.Catalog) {
	if p == nil {
		return
	}
	for i := range c.Len() {
		p.onDisk = p.onDisk || c.DB(i).Info().OnDisk
	}
	p.asked = c.PagesAsked
}

// look takes or gives back the spare processors, and those for which others leave no cores.
func (p *processors) look(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, at := p.known, p.at
	p.known, p.at = p.usage(), now
	if p.asked != nil {
		p.known.faults += int64(p.asked())
	}
	if p.known.faults >= last.faults+coldPages {
		p.until = now.Add(coldFor)
	}
	syncs := p.syncs
	p.syncs = p.syncing()
	if d := p.syncs.Slept - syncs.Slept; d > 0 && float64(d) >= hardly*float64(now.Sub(at)) {
		p.led = now.Add(coldFor)
	}
	if p.onDisk && (p.syncEach && now.After(p.led) || now.Before(p.until)) {
		p.crowd = crowd{}
		p.set(true, 0)
		p.listen(now)
		return
	}
	if p.calm.look(now, int64(p.syncs.Count-syncs.Count), p.known.switches-last.switches, !p.spare && p.number() == 1) {
		p.crowd.begun = time.Time{} // a window that began before would mix two numbers of processors
		if p.number() == 1 {
			p.set(p.fewer == 0, max(0, p.fewer-1))
		}
		p.listen(now)
		return
	}
	p.set(false, p.fewer) // without the spare ones, before the processors are counted
	if !p.crowd.rests(now, p.known.ran-last.ran, now.Sub(at)) {
		if sum, err := p.cores(); err != nil {
			p.crowd.fail(now) // the system has no figures
		} else {
			p.crowd.look(now, p.number()+p.fewer, p.working(now), sum)
		}
	}
	p.give(now)
	p.listen(now)
}

// beat takes back the processors that were given up, when its calls, which come in the rhythm of
// beats, are too late.
func (p *processors) beat(now func() time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.crowd.heard(now()) { // after the wait for mu, which is not the fault of too few processors
		p.set(false, 0)
		p.beats.set(0)
	}
}

// set sets the number of processors. Go stops all goroutines for that, so nothing is done without
// need. The caller holds mu, or nobody else has p yet.
func (p *processors) set(spare bool, fewer int) {
	if spare == p.spare && fewer == p.fewer {
		return
	}
	p.spare, p.fewer = spare, fewer
	p.change(spare, fewer)
	p.crowd.forgetBeats()
}

// listen has the beat taken while there are fewer processors and somebody may keep one. The caller
// holds mu.
func (p *processors) listen(now time.Time) {
	if p.fewer > 0 && !p.crowd.deaf(now) {
		p.beats.set(beatEvery)
	} else {
		p.beats.set(0)
	}
}

// usageSoFar asks the system.
func usageSoFar() usage {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return usage{} // fails never
	}
	return usage{int64(u.Majflt), time.Duration(u.Utime.Nano() + u.Stime.Nano()), int64(u.Nvcsw)}
}
