package replication

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/ulog"
)

const (
	// firstTimeout is how long a master may take to find in its log where it has to begin.
	firstTimeout = time.Minute

	// throttleStep is how much time a follower saves up before it sleeps.
	throttleStep = 100 * time.Millisecond

	// fillerWeight is how many updates a filler counts for. A filler is a message with a stamp and
	// no update: a master passes over updates that are not for the follower.
	fillerWeight = 64
)

// pull is one connection of a follower to its master.
//
// Messages are taken in batches: everything that has been received. The updates of a batch are
// applied, the log is waited for once, then the heartbeats of the batch are acknowledged and the
// position moves on.
type pull struct {
	f        *Follower
	master   Master
	socket   net.Conn
	conn     intake
	unhook   func() bool // keeps the end of the context from closing the socket
	throttle throttle
	hello    *frame.Hello // of a master of our kind; nil: an original master
	key      uint64       // ulog.LogKey of the master's log
	good     bool         // a message of the stream has come
	asked    ulog.Stamp   // the master was asked for the updates behind this stamp
	needed   ulog.Stamp   // updates up to this stamp have been received, later ones are needed
	expect   ulog.Stamp   // this update must come before a newer one, see parted.go; 0: none

	ups    []ulog.Update // of one database, not yet applied; they point into the read buffer
	stamps []ulog.Stamp  // their stamps in the master's log
	noted  int           // how many of ups the place contains already
	origin ulog.Origin   // of the next update; zero: the master
	last   ulog.Stamp    // newest stamp taken
	beaten bool          // the newest message is a heartbeat: the batch has all that the master had

	// passed are the newest updates, by log, that were left out since the last mark because the
	// copy of their database has them.
	passed map[uint64]ulog.Stamp
}

// connect asks a master for everything behind the position. The connection ends with the context.
func (f *Follower) connect(ctx context.Context, m Master) (*pull, error) {
	socket, err := f.dial(ctx, m.address())
	if err != nil {
		return nil, err
	}
	p := &pull{f: f, master: m, socket: socket, throttle: throttle{interval: m.Interval}}
	p.conn = intake{socket: socket, limit: f.opts.Silence, owed: db.Pending{Local: true}}
	p.unhook = context.AfterFunc(ctx, func() { socket.Close() })
	if err := p.request(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *pull) close() {
	p.unhook()
	p.socket.Close()
}

// request sends the request and reads the first byte of the answer. It asks once more for the
// update received last (place.seen), which the master must still have: see parted.go.
func (p *pull) request() error {
	f := p.f
	from := f.place.needs(f.dbs)
	p.needed = from
	// If this server had another ID when it received the update seen, that update may bear its
	// present ID. Then the master does not send it: no follower is sent updates with its own ID.
	sent := f.place.seenBy != f.opts.SID
	if f.place.seen > 0 && sent && f.place.amends == amendsNone && !f.unproven {
		p.expect = f.place.seen
		from = min(from, p.expect-1)
	}
	p.asked, f.unproven = from, false
	p.conn.out = frame.AppendFollow(p.conn.out, frame.Follow{Flags: frame.Extended, TS: uint64(from), SID: f.opts.SID})
	if err := p.fillFirst(); err != nil {
		return err
	}
	switch frame.Magic(p.conn.buffered()[0]) {
	case frame.Replication:
		p.conn.advance(1)
		return nil
	case frame.Error:
		return errRefused
	}
	return frame.ErrMagic
}

// first waits for the first message and leaves it in the buffer. An original master sends one
// within a tenth of a second after it has found where to begin.
func (p *pull) first() (frame.Message, error) {
	for {
		m, _, err := frame.DecodeMessage(p.conn.buffered())
		if !errors.Is(err, frame.ErrShort) {
			return m, err
		}
		if err := p.fillFirst(); err != nil {
			return m, err
		}
	}
}

// fillFirst is Fill with the time limit of a master that may still be looking for the beginning.
func (p *pull) fillFirst() error {
	end := time.Now().Add(firstTimeout)
	for {
		err := p.conn.fill()
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().After(end) {
			return err
		}
	}
}

// throttle spreads updates over time (-riv): each update costs an interval.
type throttle struct {
	interval time.Duration // 0: full speed
	owed     time.Duration
}

// add notes updates and fillers.
func (t *throttle) add(updates, fillers int) {
	t.owed += t.interval * time.Duration(updates+fillerWeight*fillers)
}

// pay sleeps for the whole steps that are owed, or until the context ends.
func (t *throttle) pay(ctx context.Context) {
	if due := t.owed.Truncate(throttleStep); due > 0 {
		t.owed -= due
		sleep(ctx, due)
	}
}

// batch returns how many updates may be applied at a time, at most limit. More updates than one
// step pays for would come in bursts, and the master would wait too long for an acknowledgement.
func (t *throttle) batch(limit int) int {
	if t.interval <= 0 {
		return limit
	}
	return max(1, min(limit, int(throttleStep/t.interval)))
}

// sleep returns after d, or when the context ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
