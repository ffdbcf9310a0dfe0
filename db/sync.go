package db

import (
	"errors"

	"gotycoon/db/dberr"
	"gotycoon/ulog"
)

const nanosPerMilli = 1_000_000

// Synchronize puts everything into the database's file and, with hard, on the disk. post is then called with the
// path and a time stamp: the file is complete up to it, and stays as it is until post returns, while clients go on. An
// error of post is returned as ErrPostproc. In memory databases only post happens.
func (d *DB) Synchronize(hard bool, post func(path string, at ulog.Stamp) error) error {
	if hard && d.log != nil {
		if err := d.log.SyncTo(d.log.Last()); err != nil {
			return systemError(err)
		}
	}
	at := d.tick()
	if post != nil && d.shared { // whoever goes on from the stamp must miss nothing: no update may have it, also after a crash
		if err := d.log.SyncTo(at); err != nil {
			return systemError(err)
		}
	}
	run := func() error {
		if post == nil {
			return nil
		}
		if err := post(d.Path(), at); err != nil {
			return errors.Join(dberr.ErrPostproc, err)
		}
		return nil
	}
	switch {
	case d.file == nil || d.readOnly:
		return run()
	case post == nil:
		return systemError(d.file.Checkpoint())
	}
	return systemError(d.file.Hold(run))
}

// reachEnd has the next checkpoint say that the file is complete up to the end of the shared log. Without it a file whose database has not been
// updated for long would seem to need what the log has had since, and would know
// an older position of its master than the log does.
func (d *DB) reachEnd() {
	if d.file == nil || d.readOnly || !d.shared || d.log.Err() != nil {
		return
	}
	d.commitMu.Lock()
	defer d.commitMu.Unlock()
	d.file.Apply(d.log.Last(), nil)
	if state, at := d.log.Remembered(); known(state) {
		d.file.SetPosition(state, at)
	}
}

// tick returns a time stamp such that every update with a smaller one is in the store: log and store change
// together under the commit lock.
func (d *DB) tick() ulog.Stamp {
	d.commitMu.Lock()
	defer d.commitMu.Unlock()
	return d.tickLocked()
}

// tickLocked is tick for callers that hold commitMu.
func (d *DB) tickLocked() ulog.Stamp {
	if d.shared {
		return d.log.Tick()
	}
	return ulog.Stamp(d.now().UnixMilli() * nanosPerMilli)
}
