package metrics

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// keepSlow is the number of slow operations that are remembered.
const keepSlow = 100

// Options of a Meter.
type Options struct {
	Slow   time.Duration // operations that take longer are logged and remembered; 0: none
	Sample int           // every so many requests one is logged at info level; 0: none
	Logger *slog.Logger  // nil: silent

	// Still says that nobody wants to know how many requests there are and how long they take: the
	// clock is not looked at for them. The meter is there for those who watch, see watch.go.
	Still bool
}

// Meter is the part that all recorders of a server share.
type Meter struct {
	opts     Options
	start    time.Time
	numbers  atomic.Uint32 // connections so far
	requests atomic.Uint64 // requests so far; counted only with Options.Sample

	watches atomic.Pointer[[]watch] // who looks at the requests; nil: nobody. Replaced under mu

	mu   sync.Mutex  // protects the fields below
	slow []Operation // the latest; a ring once it has keepSlow elements
	at   int         // index of the oldest element of the ring
	seen uint64      // slow operations so far
}

// New returns a Meter.
func New(o Options) *Meter {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Meter{opts: o, start: time.Now()}
}

// now returns the time since the start, in nanoseconds. It is never 0. It costs half as much as
// time.Now.
func (m *Meter) now() int64 { return int64(time.Since(m.start)) + 1 }

// Sampling reports whether only a sample of the requests is logged. A nil Meter does not sample.
func (m *Meter) Sampling() bool { return m != nil && m.opts.Sample > 0 }

// Slow returns the latest slow operations, newest first, and the number of all slow operations so
// far.
func (m *Meter) Slow() (latest []Operation, seen uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	latest = make([]Operation, 0, len(m.slow))
	for i := range m.slow {
		latest = append(latest, m.slow[(m.at+len(m.slow)-1-i)%len(m.slow)])
	}
	return latest, m.seen
}

// remember logs and remembers a slow operation.
func (m *Meter) remember(o *Operation) {
	m.opts.Logger.Warn("slow operation: " + o.String())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen++
	if len(m.slow) < keepSlow {
		m.slow = append(m.slow, *o)
		return
	}
	m.slow[m.at] = *o
	m.at = (m.at + 1) % keepSlow
}

// sampled reports whether a request is in the sample, and counts the request.
func (m *Meter) sampled() bool {
	return m.opts.Sample > 0 && m.requests.Add(1)%uint64(m.opts.Sample) == 0
}

// Operation is one request as the log shows it.
type Operation struct {
	Time     time.Time // when the reply could leave
	Protocol string
	Command  string
	Database string // name; empty if the command is about no single database
	Key      string // shortened and quoted; empty if there is none
	In, Out  int    // bytes of the request and of the reply; 0: not known
	Failed   bool
	Duration time.Duration // from the arrival of the request until the reply may leave
	Wait     time.Duration // part of Duration: the wait for the update log
	Batch    int           // number of requests in the batch, including this one
	Peer     string        // IP:PORT of the client
}

// maxKey is the number of bytes of a key that are shown.
const maxKey = 64

// String returns the text of the log line.
func (o *Operation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", o.Protocol, o.Command)
	if o.Database != "" {
		fmt.Fprintf(&b, " db=%s", o.Database)
	}
	if o.Key != "" {
		fmt.Fprintf(&b, " key=%s", o.Key)
	}
	fmt.Fprintf(&b, " in=%d out=%d time=%.6f wait=%.6f", o.In, o.Out, o.Duration.Seconds(), o.Wait.Seconds())
	if o.Batch > 1 {
		fmt.Fprintf(&b, " batch=%d", o.Batch)
	}
	if o.Failed {
		b.WriteString(" failed")
	}
	fmt.Fprintf(&b, " peer=%s", o.Peer)
	return b.String()
}

// quote quotes a key, so that a line feed or an escape sequence in it does nothing. length is the
// length of the whole key, of which key is the beginning.
func quote(key []byte, length int) string {
	switch {
	case length == 0:
		return ""
	case length > len(key):
		return strconv.QuoteToASCII(string(key)) + "..." + strconv.Itoa(length)
	}
	return strconv.QuoteToASCII(string(key))
}
