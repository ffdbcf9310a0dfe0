package netio

import "sync"

// Standing says whether this server may still answer as what it was when a connection began: in a
// cluster another server may have become the primary meanwhile. Its methods never wait.
type Standing interface {
	// Epoch returns a number that grows when connections may be answered no more.
	Epoch() uint64
	// Answers returns nil while a connection that began in an epoch may be answered.
	Answers(epoch uint64) error
}

// standing is a Standing with the connections that it is asked for.
type standing struct {
	by Standing

	mu   sync.Mutex
	open map[*Conn]struct{}
}

// SetStanding has all connections that are made from now on ask s before they send anything. It is
// called once.
func (l *Limits) SetStanding(s Standing) {
	l.standing.Store(&standing{by: s, open: map[*Conn]struct{}{}})
}

// CutAll closes all connections, so that their clients look for the server that answers them. Those
// that were made since the epoch changed are among them: they may have updated something while the
// server did not refuse updates yet.
func (l *Limits) CutAll() {
	s := l.standing.Load()
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.Cut()
	}
}

// stand notes in which epoch a connection begins.
func (c *Conn) stand() {
	if c.opts.Limits == nil {
		return
	}
	if c.standing = c.opts.Limits.standing.Load(); c.standing == nil {
		return
	}
	c.epoch = c.standing.by.Epoch()
	c.standing.mu.Lock()
	defer c.standing.mu.Unlock()
	c.standing.open[c] = struct{}{}
}

// unstand forgets a connection that ends.
func (c *Conn) unstand() {
	if c.standing != nil {
		c.standing.mu.Lock()
		defer c.standing.mu.Unlock()
		delete(c.standing.open, c)
	}
}

// Streams says that the connection feeds a follower, which judges itself by terms: what it is sent
// needs no lease, only the same epoch.
func (c *Conn) Streams() { c.streams = true }

// Exempt has the connection answered whatever becomes of the server. It is for replies that tell
// nothing of records. The caller sees to it that the connection ends with the reply.
func (c *Conn) Exempt() {
	c.unstand()
	c.standing = nil
}

// answers returns why nothing may be sent.
func (c *Conn) answers() error {
	switch s := c.standing; {
	case s == nil:
		return nil
	case c.streams && s.by.Epoch() == c.epoch:
		return nil
	default:
		return s.by.Answers(c.epoch)
	}
}
