package access

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Options of a Guard.
type Options struct {
	// Path is the access file; empty means protection by default: peers on other machines are
	// refused.
	Path string
	// Logger: nil means silent. Warnings are about wrong credentials, refused peers, and files that
	// cannot be used.
	Logger *slog.Logger
	Now    func() time.Time // nil means time.Now
}

// Guard decides for all ports of a server. It may be used by many goroutines. A nil Guard allows
// everything.
//
// It has no goroutine: the server calls Poll from time to time.
type Guard struct {
	opts   Options
	rules  atomic.Pointer[table] // nil without a file
	secret [32]byte              // salt of the hashes of credentials that are remembered
	own    ownAddresses
	logins logins
	slow   throttle
	said   limiter
	done   chan struct{} // closed by Close

	mu      sync.Mutex // protects the fields below
	seen    os.FileInfo
	text    []byte // content of the file, also of a file that cannot be used
	missing bool   // the file could not be read, and the log says so
	streams map[*stream]struct{}
	has     []Database // databases of the server; nil: not known yet
}

// Open reads the access file.
func Open(o Options) (*Guard, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	g := &Guard{opts: o, done: make(chan struct{}), streams: map[*stream]struct{}{}}
	g.logins.init()
	g.said.now = o.Now
	if _, err := rand.Read(g.secret[:]); err != nil {
		return nil, err
	}
	if o.Path == "" {
		return g, nil
	}
	info, text, err := readFile(o.Path)
	if err != nil {
		return nil, fmt.Errorf("reading the access file: %w", err)
	}
	t, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Path, err)
	}
	g.seen, g.text = info, text
	g.rules.Store(t)
	g.tellMode(info)
	return g, nil
}

func (g *Guard) tellMode(info os.FileInfo) {
	if info.Mode().Perm()&0o022 != 0 {
		g.opts.Logger.Warn("the access file can be changed by others than its owner: chmod go-w " + g.opts.Path)
	}
}

// Check reads an access file as Open does and says what is in it.
func Check(path string) (summary string, err error) {
	_, text, err := readFile(path)
	if err != nil {
		return "", err
	}
	t, err := parse(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return t.summary(), nil
}

func (t *table) summary() string {
	users, rules := 0, len(t.anyone)
	for _, p := range t.names {
		rules += len(p.rules)
		if p.hash != nil {
			users++
		}
	}
	return fmt.Sprintf("%d users with a password, %d tokens, %d certificates, %d rules", users, len(t.tokens), len(t.certs), rules)
}

func readFile(path string) (os.FileInfo, []byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is no file", path)
	case info.Size() > maxFile:
		return nil, nil, fmt.Errorf("%s: an access file has at most %d bytes", path, maxFile)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(f); err != nil {
		return nil, nil, err
	}
	return info, text.Bytes(), nil
}

// Close ends the calls that wait within the guard. Later calls that would have to wait are refused.
func (g *Guard) Close() {
	if g != nil {
		close(g.done)
	}
}

// Protects reports whether the guard is protection by default.
func (g *Guard) Protects() bool { return g != nil && g.opts.Path == "" }

// Poll reads the file again if it has changed. If it has not, that costs one stat.
func (g *Guard) Poll() {
	if g == nil || g.opts.Path == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	info, err := os.Stat(g.opts.Path)
	if err == nil && !g.missing && sameFile(info, g.seen) && g.opts.Now().Sub(info.ModTime()).Abs() > settled {
		return
	}
	g.reload()
}

// settled: two changes of a file within the resolution of its time stamp look like one. So a file
// that was changed less than settled ago is read again, even if its time stamp is the known one.
const settled = 3 * time.Second

func sameFile(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// Reload reads the file again. A file that cannot be used leaves the rules as they are, with an
// error in the log.
func (g *Guard) Reload() {
	if g == nil || g.opts.Path == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reload()
}

// reload is Reload with mu held.
func (g *Guard) reload() {
	info, text, err := readFile(g.opts.Path)
	if err != nil {
		if !g.missing {
			g.opts.Logger.Error("the access file cannot be read, the rules stay as they are: " + err.Error())
		}
		g.missing = true
		return
	}
	if g.missing {
		g.opts.Logger.Warn("the access file can be read again")
	}
	g.seen, g.missing = info, false
	if bytes.Equal(text, g.text) {
		return
	}
	g.text = text
	t, err := parse(text)
	if err != nil {
		g.opts.Logger.Error("the access file has an error, the rules stay as they are: " + g.opts.Path + ": " + err.Error())
		return
	}
	g.rules.Store(t)
	g.opts.Logger.Warn("the access file has been read again: " + t.summary())
	g.tellMode(info)
	g.tellUnknown(t)
	g.cutStreams()
}

// Serves tells the guard which databases there are. Names in db= that no database has are logged,
// now and after each change of the file.
func (g *Guard) Serves(all []Database) {
	if g == nil || g.opts.Path == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.has = all
	g.tellUnknown(g.rules.Load())
}

// tellUnknown logs names in db= that no database has. The caller holds mu.
func (g *Guard) tellUnknown(t *table) {
	if names := t.unknown(g.has); g.has != nil && len(names) > 0 {
		g.opts.Logger.Warn(fmt.Sprintf("the access file has rules with db= for %q, which this server does not have: write a name as on the "+
			"command line, or a number", names))
	}
}

// stream is a request without an end, such as a follower's. It is cut when the rules no longer
// allow it.
type stream struct {
	peer peer
	need Rights
	what target
	cut  func()
}

func (g *Guard) watch(s *stream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.streams[s] = struct{}{}
}

// cutStreams cuts the streams that the rules do not allow any more. The caller holds mu.
func (g *Guard) cutStreams() {
	for s := range g.streams {
		g.cutUnlessAllowed(s)
	}
}

func (g *Guard) cutUnlessAllowed(s *stream) {
	v := &Visitor{guard: g, peer: s.peer}
	if v.need(s.need, s.what) != nil {
		g.opts.Logger.Warn("access: the rules do not allow any more what a peer is doing, cut off: " + s.peer.text)
		s.cut()
	}
}

// isHere reports whether a peer is on this machine.
func (g *Guard) isHere(p peer) bool { return !p.away && g.isLocal(p.addr) }

// isLocal reports whether an address is one of this machine.
func (g *Guard) isLocal(at netip.Addr) bool { return at.IsLoopback() || g.own.has(at, g.opts.Now()) }

// ownAddresses are the addresses of the machine's network interfaces. Interfaces come and go, so
// the list is read again when it is older than lookAgain.
type ownAddresses struct {
	mu     sync.Mutex // protects the fields below
	known  map[netip.Addr]bool
	looked time.Time
}

const lookAgain = time.Second

func (o *ownAddresses) has(at netip.Addr, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if age := now.Sub(o.looked); age >= 0 && age < lookAgain {
		return o.known[at]
	}
	found, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	o.known, o.looked = map[netip.Addr]bool{}, now
	for _, a := range found {
		if n, ok := a.(*net.IPNet); ok {
			if own, ok := netip.AddrFromSlice(n.IP); ok {
				o.known[own.Unmap()] = true
			}
		}
	}
	return o.known[at]
}

// pause waits for d. It returns an error if the guard is closed or ctx ends meanwhile.
func (g *Guard) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-g.done:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errClosed = errors.New("the server stops")
