package db

import (
	"errors"

	"gotycoon/db/expr"
	"gotycoon/db/record"
	"gotycoon/db/store"
	"gotycoon/internal/pieces"
	"gotycoon/ulog"
)

// early is a large value of which log and store have what takes time before its key is locked: nobody waits for the disk to take 250
// MiB, nor for a copy of them, not even who stores another record of the same stripe. Whether the value is stored after all is
// decided when the key is locked, as for any other. A nil early is a value that comes with its update.
type early struct {
	db   *DB
	ups  []ulog.Update // the one of the value
	room []byte        // the value behind Headroom bytes
	xt   int64         // absolute
	kept int           // bytes of room on the disk that is kept for the value
}

// goesAhead reports whether a value of a size is written to the log before its key is locked. In an open transaction, and in a text
// database, it is not yet known what will come into the log.
func (d *DB) goesAhead(size int) bool {
	return d.log != nil && d.log.TakesAhead(size) && size <= record.MaxValueSize && d.expr.Kind != expr.Text && d.tx.Load() == nil
}

// goAhead has a large value written to the log. What it returns must be ended, once its update is in the log or will not be. w is what there
// has to be for the value to be stored: one that cannot be stored now is not written. room is as for SetInPlace, nil for a value that is
// copied. The caller holds no lock.
func (d *DB) goAhead(p *Pending, key, value, room []byte, xt record.XT, w when) (*early, error) {
	if !d.goesAhead(len(value)) {
		return nil, nil
	}
	if w != anyway {
		_, _, found, err := d.read(&glance{}, nil, key)
		if err != nil || found != (w == whenThere) {
			return nil, err
		}
	}
	if err := p.Await(nil); err != nil {
		return nil, err
	}
	if err := d.writable(key); err != nil {
		return nil, err
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
	if err := e.write(); err != nil || e.ups[0].Ahead == nil {
		e.end()
		return nil, err
	}
	return e, nil
}

// write has the log take the value, and the store prepare for it. From the value's turn on until e is ended, room on the disk is kept
// for the value.
func (e *early) write() (err error) {
	d := e.db
	e.ups[0].Ahead, err = d.log.WriteAhead(&e.ups[0], func() error {
		e.kept = len(e.room)
		d.gate.keepFor(e.kept)
		return d.admitAlone(e.ups)
	})
	if errors.Is(err, ulog.ErrAhead) {
		return d.gate.refuseDisk()
	}
	if err != nil || e.ups[0].Ahead == nil {
		return systemError(err)
	}
	return e.prepare()
}

// prepare has the store copy the value. Others may have stored large values meanwhile. The log ends its segment in front of the
// value, so what is in there had better be on the disk by then.
func (e *early) prepare() error {
	d := e.db
	if err := d.throttleFor(e.room); err != nil {
		return err
	}
	if s, ok := d.store.(store.Preparer); ok {
		s.Prepare(e.ups)
	}
	return systemError(d.log.SyncTo(d.log.End()))
}

// end gives back what has not been used.
func (e *early) end() {
	if e == nil {
		return
	}
	e.db.gate.keepFor(-e.kept)
	e.ups[0].Ahead.Discard()
	if s, ok := e.db.store.(store.Preparer); ok {
		s.Forget(e.ups)
	}
}
