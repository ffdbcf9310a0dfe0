package db

import (
	"errors"

	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/db/store"
	"gotycoon/internal/pieces"
	"gotycoon/ulog"
)

// memoryAhead is the size from which on a value goes ahead in a database without a log: the store
// copies it before the key is locked, as every other key of the stripe would wait for the copy.
const memoryAhead = 16 << 20

// goAhead has a value that goesAhead written to the log and copied by the store. The caller must
// end the returned early once its update is in the log, or will not be. A value that w forbids at
// the moment is not written. room is as for StoreInPlace, nil for a value that is copied. The
// caller holds no lock.
func (d *core) goAhead(p *Pending, key, value, room []byte, xt record.XT, w record.When) (*early, error) {
	if w != record.Anyway {
		_, _, found, err := d.read(&glance{}, nil, key)
		if err != nil || found != (w == record.WhenThere) {
			return nil, err
		}
	}
	if err := p.Await(nil); err != nil {
		return nil, err
	}
	if err := d.writable(key); err != nil {
		return nil, err
	}
	if d.log != nil {
		if err := p.Admits(d.log, d.Replicas()); err != nil {
			return nil, systemError(err)
		}
	}
	if room == nil {
		if _, err := p.Large(record.Headroom + len(value)); err != nil {
			return nil, systemError(err)
		}
		room = make([]byte, record.Headroom+len(value))
		pieces.Copy(room[record.Headroom:], value)
	}
	e := &early{db: d, room: room, xt: d.absolute(xt)}
	e.ups = []ulog.Update{{SID: d.sid, DBID: d.index, Op: ulog.OpSet, Key: key, Value: d.inPlace(room, e.xt), Stays: true}}
	if err := e.write(); err != nil || d.log != nil && e.ups[0].Ahead == nil {
		e.end()
		return nil, err
	}
	return e, nil
}

// write has the log take the value and the store prepare for it. Room on the disk is kept for the
// value from its turn in the log until the early is ended.
func (e *early) write() (err error) {
	d := e.db
	if d.log == nil {
		if err := d.admit(e.ups); err != nil {
			return err
		}
		return e.prepare()
	}
	e.ups[0].Ahead, err = d.log.WriteAhead(&e.ups[0], func() error {
		e.kept = len(e.room)
		d.gate.KeepFor(e.kept)
		return d.admitAlone(e.ups)
	})
	if errors.Is(err, ulog.ErrAhead) {
		return d.gate.RefuseAll()
	}
	if err != nil || e.ups[0].Ahead == nil {
		return systemError(err)
	}
	return e.prepare()
}

// admitAlone is admit for a large value.
func (d *core) admitAlone(ups []ulog.Update) error {
	err := d.fits(ups)
	if errors.Is(err, dberr.ErrNoSpace) && d.gate.RefuseOne() { // otherwise the log has it
		d.logger.Warn("no space for a large value, its update is refused", "path", d.path(), "bytes", len(ups[0].Value))
	}
	return err
}

// prepare has the store copy the value. Other large values may have been stored meanwhile, so it
// waits for the file first. The log ends its segment in front of the value; syncing up to there now
// keeps the fsync out of the time in which the key is locked.
func (e *early) prepare() error {
	d := e.db
	if err := d.throttleFor(e.room); err != nil {
		return err
	}
	if s, ok := d.store.(store.Preparer); ok {
		s.Prepare(e.ups)
	}
	if d.log == nil {
		return nil
	}
	return systemError(d.log.SyncTo(d.log.End()))
}

// end gives back what has not been used.
func (e *early) end() {
	if e == nil {
		return
	}
	e.db.gate.KeepFor(-e.kept)
	e.ups[0].Ahead.Discard()
	if s, ok := e.db.store.(store.Preparer); ok {
		s.Forget(e.ups)
	}
}
