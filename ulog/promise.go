package ulog

// # Promises
//
// A follower that has been told a stamp never asks again for updates up to it. So no record may get
// such a stamp later, not even when the process is killed, the power fails, and the clock is behind
// at the next start. For the stamps of records on the disk this holds without further care, because
// a new stamp is greater than all stamps in the log. Promises are about later stamps: ten times in
// a second, a master that has nothing new tells its followers the time as a stamp that no record
// has.
//
// The rule has two parts. After Open, every new stamp is greater than the stamp in the newest
// segment's header. And a follower is told a stamp only after a header on the disk has promised it.
// To write and sync the header for each heartbeat would cost ten fsyncs in a second. Therefore the
// header promises ten seconds more than is asked for (promiseAhead), and no header is written until
// those ten seconds are used up.
//
//	records on disk      promised to followers      header on disk
//	──────┴─────────────────────────┴─────────────────────┴──────────► stamps
//	                                       at most promiseAhead
//
// An example, with stamps in seconds. The last record has 100, and it is 105. Promise(105) writes a
// header with 115 and returns 105. At 106 nothing is written: 115 covers it. The machine crashes,
// and its clock says 90 at the next start. The first update then gets a stamp greater than 115,
// although the clock is behind. That is the price: after a crash stamps may run ahead of the clock
// by ten seconds, until the clock has caught up. A clean Close writes exactly what was promised,
// 106.
//
// A full segment hands the promise over to the next segment. First the next segment is put on the
// disk with the promise in its header; then the header of the full segment is reduced to the stamp
// of its last record. So a crash between the two steps leaves the promise in the newest segment,
// where Open looks.
//
// Rejected: telling followers only stamps of records. A follower of a quiet master could then not
// know whether it is up to date, and the follower's position would stay behind for as long as
// nobody writes.

// promiseAhead is how far the stamp in a header goes beyond the stamp that was asked for: ten
// seconds.
const promiseAhead = 10_000 * Stamp(perMilli)

// Promise returns the newest stamp not above at for which two things hold. A reader who now reads
// up to io.EOF has every record up to the stamp. And no record will ever get a stamp up to it, even
// if the clock is set back and the process ends in whatever way. Followers are told the stamp while
// there is nothing else to tell.
func (l *Log) Promise(at Stamp) Stamp {
	l.mu.Lock()
	at = l.promisableLocked(at)
	l.past, l.told = max(l.past, at), max(l.told, at)
	kept := l.promisedLocked()
	l.mu.Unlock()
	if at > kept && l.keepPromise(at) != nil {
		return kept
	}
	return at
}

// Pass has every later record get a stamp above at, which must be below maxStamp. It is for a
// server that takes the place of another one, which had promised its followers up to at.
func (l *Log) Pass(at Stamp) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.past = max(l.past, min(at, maxStamp-1))
}

// Promised reports whether Promise for a stamp would not wait for the disk.
func (l *Log) Promised(at Stamp) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.promisableLocked(at) <= l.promisedLocked()
}

// promisableLocked returns the newest stamp not above at that may be promised now. The caller holds
// mu.
func (l *Log) promisableLocked(at Stamp) Stamp {
	if l.safe.last < l.last {
		at = min(at, l.safe.last)
	}
	if l.closed { // the last header promises what followers were told, and no more
		at = min(at, l.told)
	}
	return at
}

// promisedLocked returns the newest stamp that the disk promises. The caller holds mu.
func (l *Log) promisedLocked() Stamp { return max(l.kept, l.synced.last) }

// keepPromise puts a header on the disk that promises promiseAhead more than at, unless a header on
// the disk promises at already.
func (l *Log) keepPromise(at Stamp) error {
	l.promises(1)
	defer l.promises(-1)
	l.writer.syncMu.Lock()
	defer l.writer.syncMu.Unlock()
	l.mu.Lock()
	done, err := l.kept >= at, l.usableLocked()
	if !done && err == nil {
		l.promised = min(at+promiseAhead, maxStamp-1)
	}
	l.mu.Unlock()
	if done || err != nil {
		return err
	}
	return l.writer.syncHeaderLocked()
}

// endPromises makes the next header promise no more than followers have been told: the log is being
// closed.
func (l *Log) endPromises() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.promised = l.told
}

// Tick takes the next stamp without a record, and returns it.
func (l *Log) Tick() Stamp {
	now := StampAt(l.opts.Now())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stamps.next(now)
	return l.last
}

// Observe makes every stamp given out from now on greater than at, a stamp that another server has
// given out. The error says that at is no stamp that a clock gives.
func (l *Log) Observe(at Stamp) error {
	if at >= maxStamp {
		return errStamp
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.past = max(l.past, at)
	return nil
}
