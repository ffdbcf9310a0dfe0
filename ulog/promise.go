package ulog

// # Promises
//
// A follower that has been told a stamp never asks for updates up to it again. So no record may get such a stamp afterwards, also
// when the process is killed, the power fails, and the clock is behind at the next start. The stamps of records that are on the disk
// see to this by themselves; a promise is about stamps beyond them.
//
// The header of the newest segment keeps promises: Open gives out no stamp that is not greater than the header's. To write and sync the header
// for each heartbeat would cost an fsync ten times in a second, so it promises promiseAhead more than is asked for, and nothing is written while
// that lasts. The price: after a crash stamps may run ahead of the clock by as much, until the clock has caught up. A clean Close writes
// just what was promised.
//
//	records on disk      promised to followers      header on disk
//	──────┴─────────────────────────┴─────────────────────┴──────────► stamps
//	                                       at most promiseAhead
//
// A full segment hands the promise over: the next one is on the disk with it before the header of the full one says what it holds and no more.

// promiseAhead is how much more than asked for a header promises: ten seconds.
const promiseAhead = 10_000 * Stamp(perMilli)

// Promise returns the newest stamp, but not more than at, such that a reader who now reads up to io.EOF has everything up to it:
// no record with such a stamp is still to be made safe, and none will get one, even if the clock is set back and the process
// ends in whatever way. Followers are told it while there is nothing else to tell.
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

// PromiseEnd is Promise for the newest record that readers may read. Records that are written and not synced may be lost when the power
// fails, after followers had them: no other record may then get their stamps.
func (l *Log) PromiseEnd() Stamp { return l.Promise(l.End()) }

// keepPromise makes the header on disk keepPromise a stamp, and some more.
func (l *Log) keepPromise(at Stamp) error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	l.mu.Lock()
	done, err := l.kept >= at, l.usableLocked()
	if !done && err == nil {
		l.promised = min(at+promiseAhead, maxStamp-1)
	}
	l.mu.Unlock()
	if done || err != nil {
		return err
	}
	return l.syncHeaderLocked()
}

// endPromises makes the next header promise no more than followers have been told: the log is being closed.
func (l *Log) endPromises() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.promised = l.told
}
