package access

import (
	"fmt"
	"math/bits"
	"net/netip"
	"sync"
	"time"
)

const (
	keepPeers   = 10_000 // peers whose wrong passwords are counted
	freeTries   = 3      // wrong passwords of a peer without a delay
	firstDelay  = 100 * time.Millisecond
	longestWait = 2 * time.Second  // between two tries of a peer
	forgive     = 10 * time.Minute // after so long without a wrong password the count begins anew
)

// throttle counts the wrong credentials of peers.
type throttle struct {
	mu    sync.Mutex // protects peers
	peers map[netip.Prefix]*strikes
}

// strikes are the wrong credentials of one peer.
type strikes struct {
	n    int
	last time.Time
	next time.Time // the earliest moment of the next try
}

// network returns what counts as one peer: an IPv4 address, or a network of 64 bits for IPv6.
func network(at netip.Addr) netip.Prefix {
	n := at.BitLen()
	if at.Is6() {
		n = 64
	}
	p, _ := at.Prefix(n) // the only error is a wrong length
	return p
}

func (t *throttle) wait(at netip.Addr, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.peers[network(at)]
	if s == nil {
		return 0
	}
	// Without the bound, a clock that is set back by an hour would lock the peer out for an hour.
	return max(0, min(s.next.Sub(now), longestWait))
}

func (t *throttle) fail(at netip.Addr, now time.Time) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := network(at)
	s := t.peers[key]
	if s == nil {
		s = t.add(key, now)
	}
	if now.Sub(s.last) > forgive {
		s.n = 0
	}
	s.n++
	s.last, s.next = now, now
	if s.n > freeTries {
		s.next = now.Add(min(firstDelay<<min(s.n-freeTries-1, 10), longestWait))
	}
	return s.n
}

// add adds a peer, and makes room for it first. The caller holds mu.
func (t *throttle) add(key netip.Prefix, now time.Time) *strikes {
	if t.peers == nil {
		t.peers = map[netip.Prefix]*strikes{}
	}
	if len(t.peers) >= keepPeers {
		for other, s := range t.peers {
			if now.Sub(s.last) > forgive {
				delete(t.peers, other)
			}
		}
	}
	for other := range t.peers {
		if len(t.peers) < keepPeers {
			break
		}
		delete(t.peers, other)
	}
	s := &strikes{last: now}
	t.peers[key] = s
	return s
}

func (t *throttle) forget(at netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.peers, network(at))
}

// limiter limits the number of log lines a second.
type limiter struct {
	now func() time.Time

	mu     sync.Mutex // protects the fields below
	second time.Time
	lines  int
	missed int
}

const linesPerSecond = 5

// next reports whether a line may be written, and how many lines have been left out since the last.
func (l *limiter) next() (ok bool, missed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if now.Sub(l.second).Abs() >= time.Second {
		l.second, l.lines = now, 0
	}
	if l.lines == linesPerSecond {
		l.missed++
		return false, 0
	}
	l.lines++
	missed, l.missed = l.missed, 0
	return true, missed
}

// failed counts wrong credentials and logs them: the first of a peer, then more and more rarely.
// user is empty for an unknown name, which is not logged because people type passwords in its
// place.
func (g *Guard) failed(from peer, user string) {
	n := g.slow.fail(from.addr, g.opts.Now())
	if n > freeTries && bits.OnesCount(uint(n)) != 1 {
		return
	}
	if user == "" {
		user = "nobody we know"
	}
	g.warn(fmt.Sprintf("access: wrong credentials from %s for %s, %d so far", from.text, user, n))
}

// refused logs that a protected server has refused a peer: the first time, then more and more
// rarely.
func (g *Guard) refused(from peer) {
	if n := g.slow.fail(from.addr, g.opts.Now()); bits.OnesCount(uint(n)) == 1 {
		g.warn(fmt.Sprintf("access: refused %s, which is on another machine, %d so far: %s", from.text, n, OpenHint))
	}
}

// warn logs a line, unless there are too many in this second.
func (g *Guard) warn(line string) {
	ok, missed := g.said.next()
	if !ok {
		return
	}
	if missed > 0 {
		line += fmt.Sprintf(" (and %d more lines like this)", missed)
	}
	g.opts.Logger.Warn(line)
}
