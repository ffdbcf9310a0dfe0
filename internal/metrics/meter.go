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

// keepSlow is how many slow operations are remembered.
const keepSlow = 100

// Options of a Meter.
type Options struct {
	Slow   time.Duration // operations that take longer are logged and remembered; 0: none
	Sample int           // every so many requests one is logged at info level; 0: none
	Logger *slog.Logger  // nil: silent
}

// Meter is what the recorders of a server have in common.
type Meter struct {
	opts     Options
	start    time.Time
	numbers  atomic.Uint32 // connections so far
	requests atomic.Uint64 // so far; only with Options.Sample

	mu   sync.Mutex  // protects the fields below
	slow []Operation // a ring, when it has keepSlow elements
	at   int         // the oldest one in the ring
	seen uint64      // slow operations so far
}

// New returns a Meter.
func New(o Options) *Meter {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Meter{opts: o, start: time.Now()}
}

// now is the time since the start. It costs half of what time.Now does.
func (m *Meter) now() int64 { return int64(time.Since(m.start)) + 1 }

// Sampling tells whether requests are logged by sampling, and so not each of them. A nil Meter does not sample.
func (m *Meter) Sampling() bool { return m != nil && m.opts.Sample > 0 }

// Slow returns the slow operations remembered, newest first, and how many there have been.
func (m *Meter) Slow() (latest []Operation, seen uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	latest = make([]Operation, 0, len(m.slow))
	for i := range m.slow {
		latest = append(latest, m.slow[(m.at+len(m.slow)-1-i)%len(m.slow)])
	}
	return latest, m.seen
}

// remember adds a slow operation and logs it.
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

// sampled tells whether a request is one of those to be logged.
func (m *Meter) sampled() bool {
	return m.opts.Sample > 0 && m.requests.Add(1)%uint64(m.opts.Sample) == 0
}

// Operation is one request as the log shows it.
type Operation struct {
	Time     time.Time // when it was done
	Protocol string
	Command  string
	Database string // its name; empty where there is none in particular
	Key      string // shortened and quoted; empty where there is none
	In, Out  int    // bytes of the request, and of the reply; 0 where nobody knows
	Failed   bool
	Duration time.Duration // from the arrival of the request to when the reply may leave
	Wait     time.Duration // of it: waiting for the update log
	Batch    int           // requests that arrived and were answered together, this one included
	Peer     string        // IP:PORT of the client
}

// maxKey is how many bytes of a key are shown.
const maxKey = 64

// String is the line of the log.
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

// quote shows a key without line ends or anything else that a terminal would obey.
func quote(key []byte, length int) string {
	switch {
	case length == 0:
		return ""
	case length > len(key):
		return strconv.QuoteToASCII(string(key)) + "..." + strconv.Itoa(length)
	}
	return strconv.QuoteToASCII(string(key))
}
