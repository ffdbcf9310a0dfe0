package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"math/bits"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
)

const (
	keepLogins  = 10_000 // right passwords that are remembered
	keepPeers   = 10_000 // peers whose wrong passwords are counted
	freeTries   = 3      // wrong passwords of a peer without a delay
	firstDelay  = 100 * time.Millisecond
	longestWait = 2 * time.Second  // between two tries of a peer
	patience    = 5 * time.Second  // a try that would have to wait longer is refused
	forgive     = 10 * time.Minute // without a wrong password; then the count begins anew
)

// logins remembers right passwords as salted hashes, since bcrypt is slow on purpose. An entry
// stands for a pair of bcrypt hash and password, so it stays true when the file changes, and the
// file need not clear the entries: otherwise all clients would have to be checked by bcrypt at
// once.
type logins struct {
	places chan struct{} // an element for each running bcrypt: some processors stay free

	mu    sync.Mutex // protects right
	right map[[sha256.Size]byte]struct{}
}

func (l *logins) init() {
	l.places = make(chan struct{}, max(1, runtime.NumCPU()/2))
	l.right = map[[sha256.Size]byte]struct{}{}
}

func (l *logins) has(key [sha256.Size]byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.right[key]
	return ok
}

func (l *logins) add(key [sha256.Size]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for old := range l.right {
		if len(l.right) < keepLogins {
			break
		}
		delete(l.right, old)
	}
	l.right[key] = struct{}{}
}

// loginKey returns the entry of logins for a bcrypt hash and a password.
func (g *Guard) loginKey(hash, password []byte) [sha256.Size]byte {
	h := sha256.New()
	// Secret and hash have fixed lengths, so different parts never make the same bytes.
	for _, part := range [][]byte{g.secret[:], hash, password} {
		_, _ = h.Write(part) // documented never to fail
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// password returns the user with this name and password, or an error. A wrong password takes long,
// and longer with each try of the peer.
func (g *Guard) password(ctx context.Context, from peer, t *table, name string, password []byte) (*principal, error) {
	p := t.names[name]
	if p != nil && p.hash == nil {
		p = nil
	}
	hash := t.worst // an unknown name takes as long as a known one
	if p != nil {
		hash = p.hash
	}
	if hash == nil {
		g.nonsense(ctx, from)
		return nil, errCredentials
	}
	key := g.loginKey(hash, password)
	for waited := time.Duration(0); ; {
		if p != nil && g.logins.has(key) {
			return p, nil
		}
		wait, right := g.try(ctx, from, p, hash, password, key)
		switch {
		case right:
			return p, nil
		case wait == 0:
			return nil, errCredentials
		case waited+wait > patience || g.pause(ctx, wait) != nil:
			return nil, errLater
		}
		waited += wait
	}
}

// try compares a password. If the peer must wait first, it returns how long.
func (g *Guard) try(ctx context.Context, from peer, p *principal, hash, password []byte, key [sha256.Size]byte) (wait time.Duration, right bool) {
	select {
	case g.logins.places <- struct{}{}:
		defer func() { <-g.logins.places }()
	case <-g.done:
		return longestWait, false
	case <-ctx.Done():
		return longestWait, false
	}
	if p != nil && g.logins.has(key) { // another connection was faster
		return 0, true
	}
	if wait := g.slow.wait(from.addr, g.opts.Now()); wait > 0 {
		return wait, false
	}
	if bcrypt.CompareHashAndPassword(hash, password) != nil || p == nil {
		g.failed(from, name(p))
		return 0, false
	}
	g.logins.add(key)
	g.slow.forget(from.addr)
	return 0, true
}

func name(p *principal) string {
	if p == nil {
		return ""
	}
	return p.name
}

// bearer returns the principal of a token, nil for an unknown token.
func (g *Guard) bearer(ctx context.Context, from peer, t *table, text []byte) *principal {
	digest := sha256.Sum256(text)
	var found *principal
	for i := range t.tokens {
		if subtle.ConstantTimeCompare(digest[:], t.tokens[i].digest[:]) == 1 {
			found = t.tokens[i].of
		}
	}
	if found == nil {
		g.nonsense(ctx, from)
	}
	return found
}

// nonsense handles credentials that fit nobody: it counts them, and delays the answer if the peer
// has sent many.
func (g *Guard) nonsense(ctx context.Context, from peer) {
	g.failed(from, "")
	if wait := g.slow.wait(from.addr, g.opts.Now()); wait > 0 {
		_ = g.pause(ctx, wait) // the answer is the same if the pause is cut short
	}
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
	return max(0, min(s.next.Sub(now), longestWait)) // bounded, should the clock be set back
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
