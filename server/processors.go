package server

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"gotycoon/db"
)

const (
	// processorsEvery is how often the server looks whether cold pages were touched.
	processorsEvery = 100 * time.Millisecond

	// coldFor is how long the spare processors stay after the latest page that had to be read.
	coldFor = 5 * time.Second
)

// processors sets how many goroutines Go runs at once (GOMAXPROCS).
//
// Database files are mapped into memory. A goroutine that touches a page which is not in memory
// waits for the disk, and Go takes its processor for busy meanwhile. So a server that reads from
// the disk has a quarter more processors than the machine, and at least one more; four times as
// many cost a quarter of the requests per second, in looking for work.
//
// A server whose pages are all in memory must not have the spare ones. The system runs one thread
// more than there are processors by taking one of them from its processor for 4 to 8 ms, in the
// midst of a request, and the requests in that thread's queue wait as long. 64 connections, 2
// processors, gets from a file, with the load generator on the same machine: the 99th percentile is
// 9 ms with a spare processor and 5.7 ms without. So the spare processors exist only while pages
// have to be read: the system counts such pages as major faults of the process.
//
// With -oas the spare processors stay. The leader of a group waits in an fsync most of the time,
// with a processor that Go takes away from it only after a while.
type processors struct {
	always bool             // the spare processors stay
	faults func() int64     // major faults so far
	use    func(spare bool) // sets the number of processors

	spare bool      // there are spare processors
	known int64     // faults at the latest look
	until time.Time // the spare processors stay until then
}

// newProcessors returns nil if there are no database files, or if the environment has a GOMAXPROCS,
// which stays as it is. The first pages are cold.
func newProcessors(c *db.Catalog, syncEach bool) *processors {
	if _, set := os.LookupEnv("GOMAXPROCS"); set || !anyOnDisk(c) {
		return nil
	}
	useProcessors(true)
	return &processors{always: syncEach, faults: majorFaults, use: useProcessors, spare: true, until: time.Now().Add(coldFor)}
}

// useProcessors sets the number that Go chooses, which follows the machine and the limits of a
// container, and adds the spare ones.
func useProcessors(spare bool) {
	runtime.SetDefaultGOMAXPROCS()
	if n := runtime.GOMAXPROCS(0); spare {
		runtime.GOMAXPROCS(n + max(1, n/4))
	}
}

func anyOnDisk(c *db.Catalog) bool {
	for i := range c.Len() {
		if c.DB(i).Info().OnDisk {
			return true
		}
	}
	return false
}

// look takes or gives back the spare processors. Go stops all goroutines for a change, so look
// makes none without need.
func (p *processors) look(now time.Time) {
	if faults := p.faults(); faults > p.known {
		p.known, p.until = faults, now.Add(coldFor)
	}
	if spare := p.always || now.Before(p.until); spare != p.spare {
		p.spare = spare
		p.use(spare)
	}
}

// majorFaults returns how many pages the system has read from the disk for this process because
// they were touched.
func majorFaults() int64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0 // fails never
	}
	return int64(usage.Majflt)
}
