package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"runtime"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
)

const (
	keepLogins = 10_000          // right passwords that are remembered
	patience   = 5 * time.Second // a try that would have to wait longer is refused
)

// logins remembers right passwords as salted hashes, since bcrypt is slow on purpose. An entry says
// that a password fits a bcrypt hash. That stays true when the access file changes, so a reload
// keeps the entries: if it cleared them, bcrypt would have to check all clients at once.
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
// and after freeTries each further wrong password of the peer takes longer, up to longestWait.
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
	if p != nil && g.logins.has(key) { // another connection has compared it meanwhile
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

// hashCost is the bcrypt cost of new hashes. A comparison takes about 60 ms on a machine of today;
// logins remembers right passwords.
const hashCost = 10

// maxPassword is the number of bytes of a password that bcrypt uses.
const maxPassword = 72

var (
	errEmpty = errors.New("the password is empty")
	errLong  = errors.New("a password has at most 72 bytes")
)

// HashPassword returns the hash of a password for an access file.
func HashPassword(password []byte) (string, error) {
	switch {
	case len(password) == 0:
		return "", errEmpty
	case len(password) > maxPassword:
		return "", errLong
	}
	hash, err := bcrypt.GenerateFromPassword(password, hashCost)
	return string(hash), err
}

// leastToken is the length of the shortest token in bytes. Tokens are compared quickly, so a short
// one could be guessed.
const leastToken = 16

var errShortToken = errors.New("a token has at least 16 characters, better 32 random ones: openssl rand -hex 32")

// HashToken returns the hash of a token for an access file.
func HashToken(token []byte) (string, error) {
	if len(token) < leastToken {
		return "", errShortToken
	}
	digest := sha256.Sum256(token)
	return hex.EncodeToString(digest[:]), nil
}
