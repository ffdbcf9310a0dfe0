package netio

// Replies that wait for long.
//
// # The problem
//
// With -oas a reply waits for an fsync. Where the disk is quick, the leader waits itself
// (syncs.go). Elsewhere it cannot wait that long: requests that wait for nothing would wait with
// it. A goroutine for each reply sleeps until the group of its update is on the disk, and the log
// wakes all of them: with 64 clients that was a third of what a set costs.
//
// # The rule
//
// A loop has one settler at most, a goroutine that waits for the log in the leader's place, and
// sends the replies one after the other. When the first update of a group is on the disk, the
// others are as well, so the settler waits once for a group. What the leader serves meanwhile is
// the settler's next group:
//
//	leader   serve A B C D │ serve E F G …                         │ serve A B …
//	settler                │ fsync {A B C D}, replies of A B C D   │ fsync {E F G …}, replies
//
// A client may not take its reply, or its connection may end, which can take long. The settler of
// its connection is then there for this connection alone: a new settler goes on with the other
// replies (Leave, as for the leader).
//
// A settler waits for one log, so that nobody waits for the disk of a database who has changed
// another one. Replies that wait for another log meanwhile, or for other servers, have a goroutine
// each: a server may confirm the one soon and the other never.
type settler struct {
	loop  *loop
	conns []*Conn // whose replies it sends
	sent  int     // those before have been served
	left  bool    // another settler has the rest
}

// shares reports whether the settler sends replies that wait for a log.
func (l *loop) shares(log any) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unsynced) == 0 && !l.settling && l.disk != log {
		l.disk, l.syncs.usual = log, slowDisk
	}
	return l.disk == log
}

// settle starts a settler. The caller holds mu.
func (l *loop) settle() {
	l.settling = true
	l.all.work.Go((&settler{loop: l}).run)
}

// run sends replies until none waits, or another settler goes on.
func (s *settler) run() {
	for s.next() {
		c := s.conns[s.sent]
		s.sent++
		c.term, c.settler, c.settling = 0, s, true
		c.resume()
	}
}

// next reports whether there is a connection to be served.
func (s *settler) next() bool {
	switch {
	case s.left:
		return false
	case s.sent < len(s.conns):
		return true
	}
	l := s.loop
	clear(s.conns)
	l.mu.Lock()
	defer l.mu.Unlock()
	s.conns, l.unsynced, s.sent = l.unsynced, s.conns[:0], 0
	if l.settling = len(s.conns) > 0; l.settling {
		l.syncs.begin(len(s.conns), l.turn)
	}
	return l.settling
}

// leave has another settler send the rest. The present one waits for the client of its connection.
func (s *settler) leave() {
	s.left = true
	rest := &settler{loop: s.loop, conns: s.conns, sent: s.sent}
	s.loop.all.work.Go(rest.run)
}

// settleEach has a goroutine of its own send the replies of each connection.
func settleEach(conns []*Conn) {
	for _, c := range conns {
		c.term, c.settling = 0, true
		go c.resume()
	}
}
