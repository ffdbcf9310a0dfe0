package replication

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"gotycoon/binproto/frame"
	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/internal/netio"
	"gotycoon/ulog"
)

// maxBatch is how many messages are applied together at most. What has been received limits it too.
const maxBatch = 1000

// pull is one connection of a follower to its master.
//
// Messages are taken in batches: everything that has been received. A batch is applied, its log records are waited for once,
// then its heartbeats are acknowledged and the position moves on.
type pull struct {
	f        *Follower
	master   Master
	socket   net.Conn
	conn     *netio.Conn
	unhook   func() bool // keeps the end of the context from closing the socket
	throttle throttle
	hello    *frame.Hello // of a master of our kind; nil: another
	key      uint64       // ulog.LogKey of its log
	good     bool         // something has come
	asked    ulog.Stamp   // updates behind it were asked for
	needed   ulog.Stamp   // and those behind this are needed: what comes before was received already
	expect   ulog.Stamp   // the update with this stamp must come before a newer one does; 0: none. See parted.go

	ups    []ulog.Update // updates of one database, not yet applied; parts of the read buffer
	stamps []ulog.Stamp  // theirs in the master's log
	noted  int           // those that the place knows of already
	origin ulog.Origin   // of the next update; zero: the master
	last   ulog.Stamp    // newest stamp taken
	beaten bool          // the newest message is a heartbeat: when the batch is stored, everything that the master had is here
}

// connect asks a master for everything behind the position. The connection ends with the context.
func (f *Follower) connect(ctx context.Context, m Master) (*pull, error) {
	socket, err := f.dial(ctx, m.address())
	if err != nil {
		return nil, err
	}
	p := &pull{f: f, master: m, socket: socket, throttle: throttle{interval: m.Interval}}
	p.conn = netio.New(socket, f.pool, netio.Options{Timeout: f.opts.Silence, MaxRequest: frame.MaxMessage + 1<<10})
	p.unhook = context.AfterFunc(ctx, func() { socket.Close() })
	if err := p.request(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *pull) close() {
	p.unhook()
	p.conn.Close()
	p.socket.Close()
}

// request sends the request and reads the first byte of the answer.
func (p *pull) request() error {
	f := p.f
	from := f.place.needs(f.dbs)
	p.needed = from
	sent := f.place.seenBy != f.opts.SID // a master sends nobody its own updates: this server may have had another ID
	if f.place.seen > 0 && sent && f.place.amends == amendsNone && !f.unproven {
		p.expect = f.place.seen
		from = min(from, p.expect-1)
	}
	p.asked, f.unproven = from, false
	p.conn.Out = frame.AppendFollow(p.conn.Out, frame.Follow{Flags: frame.Extended, TS: uint64(from), SID: f.opts.SID})
	if err := p.fillFirst(); err != nil {
		return err
	}
	switch frame.Magic(p.conn.Buffered()[0]) {
	case frame.Replication:
		p.conn.Advance(1)
		return nil
	case frame.Error:
		return errRefused
	}
	return frame.ErrMagic
}

// fillFirst is Fill for a master that may still have to look for the beginning.
func (p *pull) fillFirst() error {
	end := time.Now().Add(firstTimeout)
	for {
		err := p.conn.Fill()
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().After(end) {
			return err
		}
	}
}

// run applies what comes until the connection or the context ends, and returns why.
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

// first waits for the first message, and leaves it where it is. An original master sends one within a tenth of a second after it has found
// where to begin.
func (p *pull) first() (frame.Message, error) {
	for {
		m, _, err := frame.DecodeMessage(p.conn.Buffered())
		if !errors.Is(err, frame.ErrShort) {
			return m, err
		}
		if err := p.fillFirst(); err != nil {
			return m, err
		}
	}
}

func (p *pull) stream(ctx context.Context) error {
	for {
		taken, err := p.take()
		if err != nil {
			return err
		}
		if !taken {
			fill := p.conn.Fill
			if !p.good {
				fill = p.fillFirst
			}
			if err := fill(); err != nil {
				return p.silence(err)
			}
			continue
		}
		if err := p.conn.Flush(); err != nil {
			return err
		}
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

// forget goes back to the place that is remembered: a batch has failed, and what was noted of it is not true.
func (p *pull) forget() {
	if p.noted > 0 {
		p.f.place, _ = decodePlace(p.f.good) // it is our own
		p.f.status.position.Store(uint64(p.f.place.position))
	}
}

// take applies a batch. taken is false where the received bytes hold no complete message.
func (p *pull) take() (taken bool, err error) {
	limit := p.throttle.batch(maxBatch)
	for range limit {
		m, n, err := frame.DecodeMessage(p.conn.Buffered())
		if errors.Is(err, frame.ErrShort) {
			break
		}
		if err != nil {
			return false, err
		}
		p.conn.Advance(n)
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

// handle notes what a message brings. Updates are applied when one for another database comes.
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
		p.conn.Out = append(p.conn.Out, byte(frame.Ack))
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

// heard notes that a message came which is no heartbeat.
func (p *pull) heard() {
	p.good, p.beaten = true, false
	if p.f.status.complete.Load() || len(p.ups) == 0 {
		p.f.status.message(time.Now())
	}
}

// takeExtended takes a message of a master of our kind.
func (p *pull) takeExtended(m frame.Message) error {
	if h, ok := m.Hello(); ok && h.Gap { // what was to come next is gone
		if err := p.apply(); err != nil {
			return err
		}
		p.hello = &h
		if p.asked < p.needed && p.last <= p.needed { // only what was asked for once more is gone, perhaps
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

// wants tells whether an update is to be applied, and completes its origin.
//
// What has been made here, and what has been here on whatever way, is not: updates of a third server would otherwise circulate for ever
// between servers that follow each other. Streams are complete and in order, so an update from a log is known when a newer one from there is.
func (p *pull) wants(u *ulog.Update, at ulog.Stamp) bool {
	o, place := p.origin, &p.f.place
	p.origin = ulog.Origin{}
	if u.SID == p.f.opts.SID || !slices.Contains(p.f.dbs, u.DBID) || u.DBID == db.ServicesIndex && !p.servesServices() {
		return false
	}
	part := place.part(u.DBID)
	if part != nil && at <= part.at {
		return false // it is in the copy
	}
	switch {
	case p.hello != nil && part == nil && at <= place.position:
		return false // asked for once more
	case p.hello == nil: // counts as made here
		return true
	case o.Log == 0:
		o = ulog.Origin{Log: p.key, Stamp: at}
	case o.Log == ulog.UnknownLog: // files that keep versions know better
	case o.Log == p.f.ownLog || o.Stamp <= place.marks[o.Log] || p.waits(o):
		p.f.status.dropped.Add(1)
		return false
	}
	u.Origin = o
	return true
}

// waits tells whether an update with an origin, or a newer one from there, is among those that are not yet applied.
func (p *pull) waits(o ulog.Origin) bool {
	for i := len(p.ups) - 1; i >= 0; i-- {
		if p.ups[i].Origin.Log == o.Log {
			return o.Stamp <= p.ups[i].Origin.Stamp
		}
	}
	return false
}

// apply stores the collected updates. conn.Owed knows that they are still to be made safe.
func (p *pull) apply() error {
	if len(p.ups) == 0 {
		return nil
	}
	p.noted = 0
	err := p.f.store(&p.conn.Owed, p.ups[0].DBID, p.ups, p.note, false)
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
		p.f.good = p.f.next
	}
	p.f.status.updates.Add(int64(len(p.ups)))
	p.f.moved = true
	p.ups, p.stamps, p.noted = p.ups[:0], p.stamps[:0], 0
	if p.f.refresh {
		return errCopy
	}
	return nil
}

// note returns what is remembered with the first n of the collected updates.
func (p *pull) note(n int) *ulog.Position {
	place := &p.f.place
	if p.noted > 0 { // the call before has succeeded
		p.f.good = p.f.next
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
	return &ulog.Position{DBID: p.ups[0].DBID, State: p.f.next}
}

// leftOut tells that an update is not applied, now or ever. Like the original the follower goes on: the master would send the
// same again.
func (p *pull) leftOut(err error) {
	p.f.opts.Logger.Error(fmt.Sprintf("an update of the master is left out: %v", err))
}
