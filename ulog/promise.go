package ulog

// # Promises
//
// A follower that has been told a stamp never asks again for updates up to it. So no record may get
// such a stamp later, not even when the process is killed, the power fails, and the clock is behind
// at the next start. The records on the disk see to this for their own stamps, because a new stamp
// is greater than all stamps in the log. A promise is about the stamps beyond them: a master that
// has nothing new tells its followers the time ten times in a second.
//
// The rule: Open gives out no stamp that is not greater than the stamp in the newest segment's
// header, and a stamp is told only after a header on the disk has promised it. To write and sync
// the header for each heartbeat would cost ten fsyncs in a second. Therefore the header promises
// ten seconds more than is asked for (promiseAhead), and nothing is written while that lasts.
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
// A full segment hands the promise over: the next segment is on the disk with the promise before
// the header of the full one is reduced to what its records have. So a crash between the two leaves
// the promise in one of them.
//
// Rejected: telling followers only stamps of records. A follower of a quiet master could then not
// tell whether it is up to date, and its position would stay behind for as long as nobody writes.

// promiseAhead is how much more than asked for a header promises: ten seconds.
const promiseAhead = 10_000 * Stamp(perMilli)

// Promise returns the newest stamp, but at most at, for which the following holds: a reader who now
// reads up to io.EOF has every record up to the stamp, and no record will ever get a stamp up to
// it, even if the clock is set back and the process ends in whatever way. Followers are told the
// stamp while there is nothing else to tell.
func (l *Log) Promise(at Stamp) Stamp {
	l.mu.Lock()
	if l.safe.last < l.last {
		at = min(at, l.safe.last)
	}
	if l.closed { // the header is about to promise what has been told, and no more
		at = min(at, l.told)
	}
	l.past, l.told = max(l.past, at), max(l.told, at)
	kept := max(l.kept, l.synced.last)
	l.mu.Unlock()
	if at > kept && l.keepPromise(at) != nil {
		return kept
	}
	return at
}

// PromiseEnd is Promise for the newest record that readers may read. Records that are written and
// not synced may be lost in a power cut after followers had them. No other record may then get
// their stamps.
func (l *Log) PromiseEnd() Stamp { return l.Promise(l.End()) }

// keepPromise makes the header on disk promise a stamp, and some more.
func (l *Log) keepPromise(at Stamp) error {
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
