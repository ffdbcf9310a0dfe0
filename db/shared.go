package db

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/ulog"
)

// errAgain ends a body whose client's rights have to be looked at again. It changes nothing.
var errAgain = errors.New("the client's rights have changed")

// modify is core.modify for a database that an engine keeps. It returns when the update is as safe
// as the engine promises.
func (s *shared) modify(p *Pending, key []byte, h how, body func(b *batch) error) (gather.Outcome, error) {
	b := s.db.newBatch()
	defer b.free()
	b.owed = p
	keys := [...]engine.Key{s.key(key)}
	op := gather.Operation{Keys: keys[:], Blind: h.blind, Size: h.bytes}
	return s.carryOut(p, b, op, false, body)
}

// carryOut has body run when a group has its turn. With whole nothing is changed when body returns
// an error; otherwise that what body has put into the batch is changed all the same. A body that
// reads nothing runs at once, and its updates go with the operation.
func (s *shared) carryOut(p *Pending, b *batch, op gather.Operation, whole bool, body func(b *batch) error) (o gather.Outcome, err error) {
	taken := p.Taken()
	for {
		if err := s.admit(p); err != nil {
			return o, err
		}
		if op.Blind && (p == nil || p.Rights == nil) {
			b.restart()
			if err := body(b); err != nil {
				return o, err
			}
			if err := s.storable(b); err != nil {
				return o, err
			}
			op.Updates = b.ups
			o, err = s.groups.Do(context.Background(), op, nil)
		} else {
			o, err = s.groups.Do(context.Background(), op, func(v *gather.View) error { return s.turn(p, b, v, taken, whole, body) })
		}
		if !errors.Is(err, errAgain) {
			break
		}
	}
	if w := s.db.watch.Load(); w != nil && len(b.ups) > 0 && !failed(err) {
		w.committed(b.ups, 0)
	}
	return o, engineError(err)
}

// failed reports whether an error is the engine's, so that nothing may have been changed.
func failed(err error) bool {
	_, is := errors.AsType[*engine.Error](err)
	return is
}

// getUnique reads a record with its revision.
func (s *shared) getUnique(p *Pending, dst, key []byte) (value []byte, xt int64, unique uint64, err error) {
	at := len(dst)
	dst, rec, err := s.one(dst, key, p)
	switch {
	case err != nil:
		return nil, 0, 0, systemError(err)
	case rec == nil || engine.Expired(rec.XT, s.db.seconds()):
		return nil, 0, 0, dberr.ErrNoRecord
	}
	xt, value, _ = s.db.Split(dst[at:])
	return value, xt, rec.Revision, nil
}

// admit waits for a transaction of this server, and for nothing else: it costs the engine nothing
// to wait here rather than for the engine's lock, as other servers do. The limit is the same.
func (s *shared) admit(p *Pending) error {
	var late <-chan time.Time // nil: there was nothing to wait for yet
	for {
		wait := s.db.barred(true)
		if wait == nil && p.MayGoOn() {
			return nil
		}
		if wait != nil && late == nil {
			limit := time.NewTimer(s.groups.Timeout())
			defer limit.Stop()
			late = limit.C
		}
		if wait != nil {
			select {
			case <-wait:
			case <-late:
				return engineError(s.groups.Held())
			}
		}
		if err := p.Await(nil); err != nil {
			return err
		}
	}
}

// turn runs a body on the records of its group, and puts its updates there. taken is what the
// client had taken before the first run.
func (s *shared) turn(p *Pending, b *batch, v *gather.View, taken int, whole bool, body func(b *batch) error) error {
	b.restartAt(taken)
	switch {
	case !p.MayGoOn():
		return errAgain
	case s.db.refuses():
		return s.db.refusal()
	}
	b.view = view{s, v}
	err := body(b)
	b.view = view{}
	if err := s.storable(b); err != nil {
		return err
	}
	if whole && err != nil {
		return err
	}
	for i := range b.ups {
		v.Apply(&b.ups[i])
	}
	return err
}

// storable returns why the updates of a batch cannot be stored. The engine would refuse them too,
// and with them the group of others.
func (s *shared) storable(b *batch) error {
	if b.err != nil {
		return b.err
	}
	most := s.engine.Limits().Value
	for i := range b.ups {
		if len(b.ups[i].Value)-s.db.prefixSize() > most {
			return &dberr.Error{Code: dberr.InvalidOperation, Message: fmt.Sprintf("the engine keeps values of at most %d bytes", most)}
		}
	}
	return nil
}

// clear removes all records.
func (s *shared) clear(p *Pending, from ulog.Update, f *ulog.Position) error {
	u := ulog.Update{SID: from.SID, DBID: s.db.index, Op: ulog.OpClear, Origin: from.Origin}
	op := gather.Operation{Clear: &engine.Clear{DB: s.db.index, Log: []ulog.Update{u}}, Position: f, Blind: true}
	for {
		if err := s.admit(p); err != nil {
			return err
		}
		_, err := s.groups.Do(context.Background(), op, func(*gather.View) error {
			if !p.MayGoOn() {
				return errAgain
			}
			return nil
		})
		if !errors.Is(err, errAgain) {
			return engineError(err)
		}
	}
}

// make carries out an operation without a body.
func (s *shared) make(op gather.Operation, news []ulog.Update) error {
	_, err := s.groups.Do(context.Background(), op, nil)
	if w := s.db.watch.Load(); w != nil && err == nil {
		w.committed(news, 0)
	}
	return engineError(err)
}
