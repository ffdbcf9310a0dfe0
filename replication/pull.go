package replication

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/ulog"
)

// maxBatch is how many messages are applied together at most.
const maxBatch = 1000

// run applies what comes until the connection or the context ends. It returns why.
func (p *pull) run(ctx context.Context) error {
	first, err := p.first()
	if err != nil {
		return err
	}
	if err := p.greet(ctx, first); err != nil {
		return err
	}
	p.f.status.begin()
	err = p.stream(ctx)
	if err != nil {
		p.forget()
	}
	return err
}

// stream takes batches: it applies their updates, acknowledges their heartbeats when the updates
// are durable (flush waits for the log), and moves the position on.
func (p *pull) stream(ctx context.Context) error {
	for {
		taken, err := p.take()
		if err != nil {
			return err
		}
		if !taken {
			fill := p.conn.fill
			if !p.good {
				fill = p.fillFirst
			}
			if err := fill(); err != nil {
				return p.silence(err)
			}
			continue
		}
		if err := p.conn.flush(); err != nil {
			return err
		}
		p.markPassed()
		p.f.advance(p.last)
		if p.beaten {
			p.f.status.beat(time.Now())
			p.caughtUp()
		}
		p.throttle.pay(ctx)
	}
}

func (p *pull) silence(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("nothing has come from the master for %v", p.f.opts.Silence)
	}
	return err
}

// forget returns to the place that is remembered with the data. A batch has failed after note put
// its stamps into the place, so the place is ahead of the data.
func (p *pull) forget() {
	if p.noted > 0 {
		p.f.place, _ = decodePlace(p.f.good) // no error: encode made these bytes
		p.f.status.position.Store(uint64(p.f.place.position))
	}
}

// take applies a batch. taken is false if the received bytes hold no complete message.
func (p *pull) take() (taken bool, err error) {
	limit := p.throttle.batch(maxBatch)
	for range limit {
		m, n, err := frame.DecodeMessage(p.conn.buffered())
		if errors.Is(err, frame.ErrShort) {
			break
		}
		if err != nil {
			return false, err
		}
		p.conn.advance(n)
		if err := p.handle(m); err != nil {
			return false, err
		}
		taken = true
	}
	if err := p.apply(); err != nil {
		return false, err
	}
	return taken, nil
}

// handle takes a message. Updates are collected; they are applied when an update of another
// database comes, or at the end of the batch (take).
func (p *pull) handle(m frame.Message) error {
	if m.Magic == frame.Replication && p.hello != nil && m.IsExtended() {
		return p.takeExtended(m)
	}
	if err := p.partedInStream(ulog.Stamp(m.TS)); err != nil {
		return err
	}
	p.last = max(p.last, ulog.Stamp(m.TS))
	if m.Magic == frame.Heartbeat {
		p.good, p.beaten = true, true
		p.conn.out = append(p.conn.out, byte(frame.Ack))
		return nil
	}
	p.heard()
	if len(m.Log) == 0 {
		p.throttle.add(0, 1)
		return nil
	}
	u, err := ulog.ParseMessage(m.Log)
	if err != nil {
		p.origin = ulog.Origin{}
		p.leftOut(err)
		return nil
	}
	if !p.wants(&u, ulog.Stamp(m.TS)) {
		return nil
	}
	if len(p.ups) > 0 && p.ups[0].DBID != u.DBID {
		if err := p.apply(); err != nil {
			return err
		}
	}
	p.ups, p.stamps = append(p.ups, u), append(p.stamps, ulog.Stamp(m.TS))
	p.f.status.bytes.Add(int64(len(m.Log)))
	return nil
}

// heard notes a message that is no heartbeat.
func (p *pull) heard() {
	p.good, p.beaten = true, false
	if p.f.status.complete.Load() || len(p.ups) == 0 {
		p.f.status.message(time.Now())
	}
}

// takeExtended takes a message that only masters of our kind send.
func (p *pull) takeExtended(m frame.Message) error {
	// The updates that were to come next have been removed from the log.
	if h, ok := m.Hello(); ok && h.Gap {
		if err := p.apply(); err != nil {
			return err
		}
		p.hello = &h
		// Perhaps only the update that was asked for once more is gone, see greet.
		if p.asked < p.needed && p.last <= p.needed {
			p.f.unproven = true
			return errAgain
		}
		return p.copyAll()
	}
	if o, ok := m.Origin(); ok {
		p.origin = ulog.Origin{Log: o.Log, Stamp: ulog.Stamp(o.Stamp)}
	}
	if n, ok := m.Behind(); ok {
		p.f.status.behind.Store(int64(n))
	}
	return nil
}

// wants reports whether an update is to be applied, and completes its origin.
//
// An update that this server made is not applied, nor one that has come here before, on whatever
// way. Otherwise updates of a third server would circulate for ever between servers that follow
// each other. A stream is complete and in order, so an update of a log has come before if a newer
// update of that log has: the mark of the log tells.
func (p *pull) wants(u *ulog.Update, at ulog.Stamp) bool {
	o, place := p.origin, &p.f.place
	p.origin = ulog.Origin{}
	if u.SID == p.f.opts.SID || !slices.Contains(p.f.dbs, u.DBID) || u.DBID == db.ServicesIndex && !p.servesServices() {
		return false
	}
	part := place.part(u.DBID)
	if part != nil && at <= part.at {
		p.pass(o, at)
		return false // the copy of the database has it
	}
	switch {
	case p.hello != nil && part == nil && at <= place.position:
		return false // it is here, and was asked for once more
	case p.hello == nil: // an original master tells no origins: the update counts as made here
		return true
	case o.Log == 0:
		o = ulog.Origin{Log: p.key, Stamp: at}
	// Only a database that keeps versions can tell whether it has the update.
	case o.Log == ulog.UnknownLog:
	case o.Log == p.f.ownLog || o.Stamp <= place.marks[o.Log] || p.waits(o):
		p.f.status.dropped.Add(1)
		return false
	}
	if had := p.f.elect.Had; had != nil && o.Log != ulog.UnknownLog && had(o.Log, o.Stamp) {
		p.f.status.dropped.Add(1)
		return false
	}
	u.Origin = o
	return true
}

// pass notes an update that is here by a copy. In a cluster it gets a mark when everything before
// it is stored: once the position has reached the instant of the copy, marks are all that tells the
// other members of the update. Elsewhere marks are about what came one by one, see meetLog.
func (p *pull) pass(o ulog.Origin, at ulog.Stamp) {
	switch {
	case p.f.elect.Term == 0 || p.hello == nil || o.Log == ulog.UnknownLog || o.Log == p.f.ownLog:
		return
	case o.Log == 0:
		o = ulog.Origin{Log: p.key, Stamp: at}
	}
	if p.passed == nil {
		p.passed = map[uint64]ulog.Stamp{}
	}
	p.passed[o.Log] = max(p.passed[o.Log], o.Stamp)
}

// markPassed is called when all that has come is durable, and before the position moves on.
func (p *pull) markPassed() {
	for log, at := range p.passed {
		p.f.place.mark(log, at)
	}
	clear(p.passed)
}

// waits reports whether the update with an origin, or a newer update of the same log, is among the
// collected updates.
func (p *pull) waits(o ulog.Origin) bool {
	for i := len(p.ups) - 1; i >= 0; i-- {
		if p.ups[i].Origin.Log == o.Log {
			return o.Stamp <= p.ups[i].Origin.Stamp
		}
	}
	return false
}

// apply stores the collected updates. They are durable after conn.owed.Wait, which flush calls.
func (p *pull) apply() error {
	if len(p.ups) == 0 {
		return nil
	}
	p.noted = 0
	err := p.f.store(&p.conn.owed, p.ups[0].DBID, p.ups, p.note, false)
	p.throttle.add(len(p.ups), 0)
	e, ok := errors.AsType[*dberr.Error](err)
	if ok && e.Code == dberr.InvalidOperation {
		p.leftOut(e)
		err = nil
	}
	if err != nil {
		return err
	}
	if p.noted > 0 {
		p.f.remember(p.f.next)
	}
	p.f.status.updates.Add(int64(len(p.ups)))
	p.f.moved = true
	p.ups, p.stamps, p.noted = p.ups[:0], p.stamps[:0], 0
	if p.f.refresh {
		return errCopy
	}
	return nil
}

// note returns the position record that the log gets in one group with the first n of the collected
// updates.
func (p *pull) note(n int) *ulog.Position {
	place := &p.f.place
	if p.noted > 0 { // the commit of the group of the previous call has succeeded
		p.f.remember(p.f.next)
	}
	for ; p.noted < n; p.noted++ {
		if o := p.ups[p.noted].Origin; o.Log != 0 && o.Log != ulog.UnknownLog {
			place.mark(o.Log, o.Stamp)
		}
		place.position = max(place.position, p.stamps[p.noted])
		if p.hello != nil {
			place.seen, place.seenBy = p.stamps[p.noted], p.ups[p.noted].SID
		}
	}
	p.f.next = place.encode()
	note := &ulog.Position{DBID: p.ups[0].DBID, State: p.f.next}
	if p.hello != nil && n > 0 {
		note.After = p.stamps[n-1]
	}
	return note
}

// leftOut logs that an update can never be applied. Like the original, the follower goes on: the
// master would only send the same update again.
func (p *pull) leftOut(err error) {
	p.f.opts.Logger.Error(fmt.Sprintf("an update of the master is left out: %v", err))
}
