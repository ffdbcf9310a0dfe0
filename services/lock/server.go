package lock

import (
	"math"
	"sync"
	"time"

	"gotycoon/services"
	"gotycoon/services/leader"
)

const (
	// Name is the name of the service.
	Name = "lock"

	// DefaultPort is the default port of a lock server.
	DefaultPort = 11400

	// DefaultMaxKeys is the default of Options.MaxKeys.
	DefaultMaxKeys = 1_000_000

	// DefaultMaxWaiters is the default of Options.MaxWaiters.
	DefaultMaxWaiters = 100_000

	defaultMemory = 1 << 30
	maxLists      = 4                // lists that are built at the same time
	tick          = time.Millisecond // the clock looks at the timers at most this often
)

// Options of a Server. The zero value is usable.
type Options struct {
	services.Options

	MaxTTL     time.Duration // longest EXPIRES; longer ones are cut. 0: 2^31-1 seconds
	MaxKeys    int           // keys in use; a new key beyond is refused. 0: DefaultMaxKeys
	MaxWaiters int           // waiting requests of all keys; more are refused. 0: DefaultMaxWaiters

	// MaxMemory bounds the names of the keys in use, and the requests of all clients but the first
	// of each key, in bytes; what is beyond is refused. 0 means 1 GiB.
	MaxMemory int64

	// StrictOrder: no request overtakes a waiting request, even if the latter waits only because it
	// allows fewer holders than there are.
	StrictOrder bool

	Fences  Fences       // where fencing tokens come from; nil: lock-fenced is refused
	Primary *leader.Role // which of several servers gives out tokens; nil: this one
}

func (o *Options) setDefaults() {
	if o.MaxKeys <= 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	if o.MaxWaiters <= 0 {
		o.MaxWaiters = DefaultMaxWaiters
	}
	if o.MaxMemory <= 0 {
		o.MaxMemory = defaultMemory
	}
}

// bounds returns the limits for the table.
func (o *Options) bounds() bounds {
	b := bounds{keys: int64(o.MaxKeys), waiters: int64(o.MaxWaiters), names: o.MaxMemory, expires: math.MaxInt32, strict: o.StrictOrder}
	if o.MaxTTL > 0 {
		b.expires = int32(min(max(1, o.MaxTTL/time.Second), math.MaxInt32))
	}
	return b
}

// Server serves locks on one port.
//
// Goroutines: the port's, the clock, the reservation of tokens, and one for each client that is
// slow to take lines which others have caused (outbox.go). Close ends them and waits for them.
type Server struct {
	*services.Port
	table   *table
	started time.Time
	lists   chan struct{}  // holds an element for each list that is being built
	quit    chan struct{}  // closed by Close
	workers sync.WaitGroup // clock, tokens
	writers sync.WaitGroup // goroutines of writeRest
}

// New returns a server without locks. If this server is the primary, New reserves fencing tokens.
func New(o Options) (*Server, error) {
	o.setDefaults()
	port := services.NewPort(Name, o.Options, commandNames()...)
	tk := newTokens(o.Fences, o.Primary, port.Logger)
	if tk != nil {
		if err := o.Primary.Attach(tk); err != nil {
			return nil, err
		}
	}
	return &Server{
		Port:    port,
		table:   newTable(o.bounds(), tk),
		started: time.Now(),
		lists:   make(chan struct{}, maxLists),
		quit:    make(chan struct{}),
	}, nil
}

// Close ends the connections, which releases all locks, and returns when all goroutines have ended.
// It is called once.
func (s *Server) Close() error {
	close(s.quit)
	s.workers.Wait()
	err := s.Stop()
	s.writers.Wait()
	return err
}

// now is the time since the start in nanoseconds. Setting the wall clock does not change it.
func (s *Server) now() int64 { return int64(time.Since(s.started)) }

// clock lets requests time out and locks expire.
func (s *Server) clock() {
	var st step
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-timer.C:
		case <-s.table.kick:
		}
		st.now = s.now()
		s.table.pass(&st)
		timer.Reset(s.untilNext())
	}
}

// untilNext returns how long the clock may rest.
func (s *Server) untilNext() time.Duration {
	when := s.table.next()
	if when == never {
		return math.MaxInt64
	}
	return max(tick, time.Duration(when-s.now()))
}
