package forward

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/access"
	"gotycoon/client/wire/frame"
	"gotycoon/internal/member"
	"gotycoon/internal/netio"
)

const (
	defaultWait = 2 * time.Second
	retryEvery  = 50 * time.Millisecond // between two tries to reach the primary
)

// Options of a Forwarder.
type Options struct {
	// Primary returns the data address of the primary. away reports that it is another server; addr
	// is empty if it is not known which. Primary is called for each update, and must be quick.
	Primary func() (addr string, away bool)

	// Dial opens a connection of package member.
	Dial func(ctx context.Context, addr string, kind frame.MemberKind, client *access.Client) (net.Conn, error)

	// Lag returns how far this server is behind the primary.
	Lag func() time.Duration

	Wait    time.Duration        // for the primary, before a request is refused; 0: 2 s
	Timeout func() time.Duration // a client that takes no byte for so long is cut off
	Idle    func() time.Duration // a client that is silent for so long is disconnected; 0: none is
	Logger  *slog.Logger
}

// Forwarder moves connections. It implements netio.Mover. Many goroutines may use it.
type Forwarder struct {
	opts Options

	total  atomic.Uint64
	failed atomic.Uint64
	said   atomic.Int64 // Unix seconds of the latest line about a failure

	mu    sync.Mutex // protects moved
	moved map[*moved]struct{}
}

// New returns a forwarder.
func New(o Options) *Forwarder {
	if o.Wait <= 0 {
		o.Wait = defaultWait
	}
	return &Forwarder{opts: o, moved: map[*moved]struct{}{}}
}

var (
	errHere    = errors.New("this server is the primary")
	errUnknown = errors.New("which server is the primary is not known")
	errLoop    = errors.New("this server is not the primary, and the server that has forwarded the request should have known: nothing was done, connect again")
)

// Away implements netio.Mover.
func (f *Forwarder) Away() bool {
	_, away := f.opts.Primary()
	return away
}

// Behind implements netio.Mover.
func (f *Forwarder) Behind(limit time.Duration) bool { return f.Away() && f.opts.Lag() > limit }

// Move implements netio.Mover. It returns when the connection is over.
func (f *Forwarder) Move(c *netio.Conn, kind frame.MemberKind, taken []byte) (over bool, err error) {
	if c.Flush() != nil {
		return true, nil // the client has gone
	}
	if c.Forwarded() {
		return true, f.fail(errLoop)
	}
	ctx, client := c.Ending, c.Client()
	if ctx == nil {
		ctx = context.Background()
	}
	primary, addr, err := f.connect(ctx, kind, &client)
	switch {
	case errors.Is(err, errHere):
		return false, nil
	case err != nil:
		return true, f.fail(err)
	}
	f.total.Add(1)
	f.opts.Logger.Info(fmt.Sprintf("moved to the primary: expr=%s kind=%s primary=%s", client.Address, kind, addr))
	patient := kind != frame.MemberData && kind != frame.MemberMemcached
	f.run(ctx, c, &moved{primary: primary, addr: addr, patient: patient, active: time.Now()}, taken)
	return true, nil
}

// run copies until the connection is over.
func (f *Forwarder) run(ctx context.Context, c *netio.Conn, m *moved, taken []byte) {
	defer m.primary.Close()
	// Registered before the first byte leaves, so that no end is missed while it does.
	f.mu.Lock()
	f.moved[m] = struct{}{}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.moved, m)
	}()
	defer context.AfterFunc(ctx, m.end)()
	client, err := c.Detach(func(unread []byte) error {
		if _, err := m.primary.Write(taken); err != nil {
			return err
		}
		_, err := m.primary.Write(unread)
		return err
	})
	if err == nil {
		m.begin(client, f.opts.Timeout())
		m.copy()
	}
}

// connect opens a connection to the primary.
func (f *Forwarder) connect(ctx context.Context, kind frame.MemberKind, client *access.Client) (c net.Conn, addr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.opts.Wait)
	defer cancel()
	var last error // that is worth telling
	for {
		addr, away := f.opts.Primary()
		if !away {
			return nil, "", errHere
		}
		err := errUnknown
		if addr != "" {
			if c, err = f.opts.Dial(ctx, addr, kind, client); err == nil {
				return c, addr, nil
			}
		}
		if last == nil || !cutShort(ctx, err) {
			last = err
		}
		if !passing(err) || !pause(ctx) {
			return nil, "", fmt.Errorf("this server is not the primary, and has not reached the primary (%w): nothing was done, try again", last)
		}
	}
}

// cutShort reports whether a try has failed because the time for all of them was over. A dial may
// notice the end a moment before ctx does.
func cutShort(ctx context.Context, err error) bool {
	late, ok := errors.AsType[net.Error](err)
	return ctx.Err() != nil || ok && late.Timeout()
}

// passing reports whether another try may do better: the primary is being elected, or started. A
// handshake that fails does so again, and the primary would count it as an attack.
func passing(err error) bool {
	refused, ok := errors.AsType[*member.Refused](err)
	if ok {
		return refused.Status == frame.MemberStandby
	}
	failed, ok := errors.AsType[*net.OpError](err)
	return errors.Is(err, errUnknown) || ok && failed.Op == "dial"
}

// pause waits until the next try, and reports whether there is one.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(retryEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// fail counts a failure, and logs one a second.
func (f *Forwarder) fail(err error) error {
	f.failed.Add(1)
	if now, last := time.Now().Unix(), f.said.Load(); now != last && f.said.CompareAndSwap(last, now) {
		f.opts.Logger.Warn("an update is not forwarded: " + err.Error())
	}
	return err
}

// Look ends the connections that have moved to a server that is not the primary any more, and those
// that have been idle for too long. It is called every LookEvery, and when the primary changes.
func (f *Forwarder) Look(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.moved) == 0 {
		return
	}
	addr, away := f.opts.Primary()
	idle := f.opts.Idle()
	for m := range f.moved {
		// While the primary is not known, the former one may still answer.
		if !away || addr != "" && addr != m.addr || m.idleSince(now, idle) {
			m.end()
		}
	}
}

// LookEvery is the time between two calls of Look.
const LookEvery = 100 * time.Millisecond

// Figures are what a Forwarder has counted.
type Figures struct {
	Moved  int    // connections that are moved now
	Total  uint64 // that have been moved
	Failed uint64 // updates that were refused because the primary was not reached
}

// Figures returns the counts.
func (f *Forwarder) Figures() Figures {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Figures{Moved: len(f.moved), Total: f.total.Load(), Failed: f.failed.Load()}
}
