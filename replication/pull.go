package replication

import (
	"context"
	"errors"
	"fmt"
	"net"

	"gotycoon/binproto/frame"
	"gotycoon/db"
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
	socket   net.Conn
	conn     *netio.Conn
	unhook   func() bool // keeps the end of the context from closing the socket
	throttle throttle

	ups  []ulog.Update // updates of one database, not yet applied; parts of the read buffer
	last ulog.Stamp    // newest stamp taken
}

// connect asks a master for everything behind the position. The connection ends with the context.
func (f *Follower) connect(ctx context.Context, m Master) (*pull, error) {
	socket, err := f.dial(ctx, m.address())
	if err != nil {
		return nil, err
	}
	p := &pull{f: f, socket: socket, throttle: throttle{interval: m.Interval}}
	p.conn = netio.New(socket, f.pool, netio.Options{Timeout: netTimeout, MaxRequest: frame.MaxMessage + 1<<10})
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
	p.conn.Out = frame.AppendFollow(p.conn.Out, frame.Follow{TS: p.f.position.Load(), SID: p.f.opts.SID})
	if err := p.conn.Fill(); err != nil {
		return err
	}
	switch frame.Magic(p.conn.Buffered()[0]) {
	case frame.Replication:
		p.conn.Advance(1)
		return nil
	case frame.Error:
		return frame.ErrRefused
	}
	return frame.ErrMagic
}

// run applies what comes until the connection or the context ends, and returns why.
func (p *pull) run(ctx context.Context) error {
	for {
		taken, err := p.take()
		if err != nil {
			return err
		}
		if !taken {
			if err := p.conn.Fill(); err != nil {
				return err
			}
			continue
		}
		if err := p.conn.Flush(); err != nil {
			return err
		}
		p.f.advance(p.last)
		p.throttle.pay(ctx)
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
	return taken, p.apply()
}

// handle notes what a message brings. Updates are applied when one for another database comes.
func (p *pull) handle(m frame.Message) error {
	p.last = max(p.last, ulog.Stamp(m.TS))
	switch {
	case m.Magic == frame.Heartbeat:
		p.conn.Out = append(p.conn.Out, byte(frame.Ack))
		return nil
	case len(m.Log) == 0:
		p.throttle.add(0, 1)
		return nil
	}
	u, err := ulog.ParseMessage(m.Log)
	if err != nil {
		p.leftOut(err)
		return nil
	}
	if u.SID == p.f.opts.SID || int(u.DBID) >= p.f.opts.Catalog.Len() {
		return nil
	}
	if len(p.ups) > 0 && p.ups[0].DBID != u.DBID {
		if err := p.apply(); err != nil {
			return err
		}
	}
	p.ups = append(p.ups, u)
	return nil
}

// apply stores the collected updates. conn.Owed knows that they are still to be made safe.
func (p *pull) apply() error {
	if len(p.ups) == 0 {
		return nil
	}
	d := p.f.opts.Catalog.DB(int(p.ups[0].DBID))
	err := d.Replicate(&p.conn.Owed, p.ups)
	p.throttle.add(len(p.ups), 0)
	p.ups = p.ups[:0]
	if e, ok := errors.AsType[*db.Error](err); ok && e.Code == db.InvalidOperation {
		p.leftOut(e)
		return nil
	}
	return err
}

// leftOut tells that an update is not applied, now or ever. Like the original the follower goes on: the master would send the
// same again.
func (p *pull) leftOut(err error) {
	p.f.opts.Logger.Error(fmt.Sprintf("an update of the master is left out: %v", err))
}
