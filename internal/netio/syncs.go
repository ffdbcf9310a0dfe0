package netio

import (
	"time"

	"gotycoon/db/owed"
)

// Leaders that wait for the disk.
//
// # The problem
//
// An fsync takes 0.1 ms on a quick disk, and costs the same whether one update waits for it or
// sixty. A settler syncs what has come while it synced before: with 64 clients, half of them wait
// for the disk while the other half are served. So there are twice as many fsyncs as need be, and
// each wakes the settler, whose thread gets into the leader's way.
//
// # The rule
//
// On a quick disk the leader waits itself, and not before it must: when a round is over, it asks
// for more news, without a wait, and serves what has come. When nothing has come, or after
// mostGather, it syncs the log once and sends all replies. Where most of what it serves waits for
// the disk anyhow, a disk is quick that takes twice as long: few clients wait who need no disk.
//
//	leader   serve A B C │ news? D E: serve │ news? F: serve │ none: fsync, replies of A to F
//
// All clients wait for the disk at the same time, then, and nobody is served meanwhile: that is
// what a server with one thread does. It ends when the disk turns out to be slow: the leader
// measures how long it waits, and so does the settler. If a single fsync hangs, watch lets somebody
// else lead, as for every wait; a settler then has the replies that are left.
//
// A second loop would only make two groups of one, and two leaders wait for each other's fsync. So
// the time in which leaders wait for updates that are most of their work is counted (Syncing), and
// the server uses no more loops while that is a part of the time that counts (server/spread.go).
// The waits of a settler count, too, while the disk may become a quick one: those of two loops wait
// for each other, and would keep the disk a slow one. On a slower disk groups are large enough for
// two loops.
//
// Measured with 64 clients that never rest, on two cores, the load on the same ones: 98,000 sets in
// a second at 9.4 µs, 59 in a group. With the settler and two loops, as before, 57,000 at 17.0 µs;
// with the settler and one loop 90,000 at 10.4 µs (BENCHMARKS.md).
type syncs struct {
	usual   time.Duration // smoothed time of a wait for the disk of the loop's log
	leading bool          // the leader sends replies that waited for the disk
	most    bool          // replies that wait were most of what was served before the latest sync
	served  uint64        // turn at that sync, with the turns of its replies
	since   time.Time     // when it began to ask for more; zero: it does not
	waiting int           // replies that waited then
}

const (
	quickDisk  = 500 * time.Microsecond // a leader waits that long
	fairDisk   = 2 * quickDisk          // if most of its work waits with it
	slowDisk   = 2 * fairDisk           // of a disk that is not known, or for which a leader has waited too long
	mostGather = 500 * time.Microsecond // from the first reply that waits to the fsync
	syncWeight = 8                      // so many waits make the smoothed time
)

// quick reports whether the leader waits for the disk itself.
func (s *syncs) quick() bool { return s.usual <= quickDisk || s.most && s.usual <= fairDisk }

// begin notes that a sync begins for so many replies. The caller holds mu of the loop with turn.
func (s *syncs) begin(replies int, turn uint64) {
	served := int64(turn - s.served)
	if served < int64(replies) {
		return // they are from the sync before, for which a settler goes on
	}
	s.most, s.served = 2*int64(replies) >= served, turn
}

// gathers reports whether replies that wait for the disk wait for more requests first: as long as
// each round brings more replies that wait. The caller is the leader, at the end of a round, and
// holds mu.
func (l *loop) gathers() bool {
	s := &l.syncs
	n := len(l.unsynced)
	if n == 0 || l.settling || !s.quick() {
		s.since = time.Time{}
		return false
	}
	if s.since.IsZero() {
		s.since, s.waiting = time.Now(), n
		return true
	}
	if n > s.waiting && time.Since(s.since) < mostGather {
		s.waiting = n
		return true
	}
	s.since = time.Time{}
	return false
}

// leadSync has the leader send the replies that wait for the disk, if the disk is quick. The caller
// holds mu.
func (l *loop) leadSync() bool {
	s := &l.syncs
	n := len(l.unsynced)
	if n == 0 || l.settling || !s.quick() {
		return false
	}
	s.begin(n, l.turn)
	s.served += uint64(n) // each has a turn for its reply
	l.owing, l.unsynced = l.unsynced, l.owing
	s.leading = true
	return true
}

// giveSync gives the replies that are left to a settler, because another goroutine leads from now
// on. The caller holds mu.
func (l *loop) giveSync() {
	if !l.syncs.leading {
		return
	}
	l.syncs.leading = false
	l.syncs.served -= uint64(len(l.owing) - l.settled)
	l.unsynced = append(l.unsynced, l.owing[l.settled:]...)
	clear(l.owing[l.settled:])
	l.owing = l.owing[:l.settled]
	if len(l.unsynced) > 0 && !l.settling {
		l.settle()
	}
}

// leadsSync reports whether the caller serves the connection as a leader that sends replies which
// waited for the disk.
func (c *Conn) leadsSync() bool {
	if c.term == 0 || !c.settling {
		return false
	}
	l := c.loop
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.syncs.leading && l.term == c.term
}

// waitLogs waits for this server's logs. For those who send one reply after the other it measures
// how long the disk takes. The first of them waits, the others find their updates on the disk.
func (c *Conn) waitLogs() error {
	if !c.settling || c.bare == nil || c.Owed.Waiting() != owed.Disk {
		return c.Owed.WaitLogs()
	}
	log := c.Owed.OneLog()
	began := time.Now()
	err := c.Owed.WaitLogs()
	if log != nil {
		c.loop.synced(log, time.Since(began), c.term)
	}
	return err
}

// synced notes a wait for the disk of a log, of the leader of a term or, with term 0, of a settler.
func (l *loop) synced(log any, d time.Duration, term uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if log == l.disk {
		l.syncs.usual += (d - l.syncs.usual) / syncWeight
	}
	leads := term == l.term && l.syncs.leading
	if leads {
		l.all.slept.Add(int64(d))
		l.all.syncs.Add(1)
	}
	settles := term == 0 && log == l.disk && l.syncs.usual <= slowDisk
	if (leads || settles) && l.syncs.most {
		l.all.syncing.Add(int64(d))
	}
}

// Syncing says how loops have waited for the disk so far.
type Syncing struct {
	Count uint64        // waits of leaders
	Slept time.Duration // in them
	Most  time.Duration // for updates that were most of the work; of settlers, too, if the disk is nearly quick
}

// Syncing returns how the loops have waited for the disk.
func (all *Loops) Syncing() Syncing {
	if all == nil {
		return Syncing{}
	}
	return Syncing{all.syncs.Load(), time.Duration(all.slept.Load()), time.Duration(all.syncing.Load())}
}
