package db

import "time"

// SyncLog returns when every update made so far would survive a power cut, in every mode. A database in memory without a log
// has nothing that could, and returns at once.
func (d *DB) SyncLog() error {
	if d.log == nil {
		return nil
	}
	return systemError(d.log.SyncTo(d.log.Last()))
}

// Logged returns the time of the newest update in the database's log. That time only grows, across restarts too, and is not before the
// times that other servers gave to their updates. ok is false where the database has no log.
func (d *DB) Logged() (at time.Time, ok bool) {
	if d.log == nil {
		return at, false
	}
	return d.log.Last().Time(), true
}
