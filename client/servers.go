package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	findTime  = 15 * time.Second // default of Options.FindTime
	checkTime = time.Second      // default of Options.CheckTime

	// pauseFirst is the first pause between two searches in vain; pauseMost is the longest.
	pauseFirst = 20 * time.Millisecond
	pauseMost  = time.Second
)

// servers are the servers of a cluster. Each has a Client of its own, with its idle connections.
type servers struct {
	all  []*Client
	opts Options
	turn atomic.Uint64 // of readers

	// search is held by the goroutine that looks for a primary. The others wait for it.
	search chan struct{}

	mu      sync.Mutex // guards the fields below
	primary *Client    // nil: it is to be looked for
	readers []*Client  // replicas that reads may go to
	checked time.Time  // when the roles were last asked for
	term    int64      // newest term that a server has told; earlier primaries are none any more
}

func newServers(addrs string, o Options) *servers {
	if o.FindTime == 0 {
		o.FindTime = findTime
	}
	if o.CheckTime == 0 {
		o.CheckTime = checkTime
	}
	s := &servers{opts: o, search: make(chan struct{}, 1)}
	for addr := range strings.SplitSeq(addrs, ",") {
		if addr = strings.TrimSpace(addr); addr != "" {
			s.all = append(s.all, New(addr, o))
		}
	}
	return s
}

func (s *servers) close() error {
	var all error
	for _, c := range s.all {
		all = errors.Join(all, c.Close())
	}
	return all
}

// with runs f on a connection to the primary, or for reads perhaps to a replica, and again on
// another one as r allows.
func (s *servers) with(ctx context.Context, r repetition, f func(*conn) error) error {
	find := s.find(ctx)
	if r == repeated && s.opts.ReadReplicas {
		if c := s.reader(); c != nil {
			err := c.with(ctx, r, f)
			if !errors.Is(err, ErrNetwork) || ctx.Err() != nil {
				return err
			}
			s.leaveReader(c)
		}
	}
	var last error // says more than that the search for another primary has ended
	var refused *Client
	for {
		c, err := find()
		if err != nil {
			return cmp.Or(last, err)
		}
		err = c.with(ctx, r, f)
		if errors.Is(err, ErrNetwork) && !errors.Is(err, context.Canceled) && !errors.Is(err, errClosed) || errors.Is(err, ErrReadOnly) {
			s.leave(c)
		}
		if ctx.Err() != nil || errors.Is(err, errClosed) || !r.again(err, &s.opts) {
			return err
		}
		if errors.Is(err, ErrReadOnly) {
			if refused == c {
				return err // it still says that it is the primary: this is about the records
			}
			refused = c
		}
		last = err
	}
}

// dial connects to the primary.
func (s *servers) dial(ctx context.Context, dial func(*Client, context.Context) (*conn, error)) (*conn, error) {
	find := s.find(ctx)
	for {
		c, err := find()
		if err != nil {
			return nil, err
		}
		cn, err := dial(c, ctx)
		if err == nil || ctx.Err() != nil || !errors.Is(err, ErrNetwork) {
			return cn, err
		}
		s.leave(c)
	}
}

// leave makes the next call look for a primary, unless another one has been found meanwhile.
func (s *servers) leave(c *Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.primary == c {
		s.primary = nil
	}
}

// find returns a function that returns the primary, and looks for one if it is not known. The
// function is called again after a call has failed; its pauses become longer then.
func (s *servers) find(ctx context.Context) func() (*Client, error) {
	var end time.Time
	tries := 0
	return func() (*Client, error) {
		for {
			c, fresh := s.known(time.Now())
			if c == nil || !fresh {
				err := s.look(ctx)
				if c, _ = s.known(time.Now()); err == nil && c == nil {
					continue // another call has failed there meanwhile
				}
				if err != nil {
					if tries++; ctx.Err() != nil || errors.Is(err, errClosed) || s.pause(ctx, &end, tries) != nil {
						return nil, err
					}
					continue
				}
			}
			// It may say that it is the primary, and yet not do the work.
			if tries++; tries > 2 {
				if err := s.pause(ctx, &end, tries); err != nil {
					return nil, err
				}
			}
			return c, nil
		}
	}
}

// pause waits before the next attempt. It returns an error when the time of the call is over.
func (s *servers) pause(ctx context.Context, end *time.Time, tries int) error {
	if end.IsZero() {
		*end = time.Now().Add(s.opts.FindTime)
	}
	wait := min(pauseFirst<<min(tries, 10), pauseMost)
	wait = wait*3/4 + rand.N(wait/2)
	if _, limited := ctx.Deadline(); !limited && time.Now().Add(wait).After(*end) {
		return s.noPrimary(fmt.Sprintf("for %v", s.opts.FindTime))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return networkError(context.Cause(ctx))
	}
}

func (s *servers) noPrimary(why string) error {
	var addrs []string
	for _, c := range s.all {
		addrs = append(addrs, c.addr)
	}
	text := fmt.Sprintf("%v: %s: %s", ErrNoPrimary, strings.Join(addrs, ","), why)
	return &Error{Code: Network, Message: text, Err: ErrNoPrimary}
}

// known returns the primary, nil for none, and whether its role was asked for lately.
func (s *servers) known(now time.Time) (c *Client, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.primary, now.Sub(s.checked) < s.opts.CheckTime
}

// reader returns the server whose turn it is to answer a read, nil if it is the primary's, or if
// the roles are not known any more.
func (s *servers) reader() *Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.primary == nil || time.Since(s.checked) >= s.opts.CheckTime {
		return nil
	}
	i := s.turn.Add(1) % uint64(len(s.readers)+1)
	if i == 0 {
		return nil
	}
	return s.readers[i-1]
}

func (s *servers) leaveReader(c *Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []*Client
	for _, r := range s.readers {
		if r != c {
			left = append(left, r)
		}
	}
	s.readers = left
}

// withPort adds a port to an address without one.
func withPort(addr string, port int) string {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return net.JoinHostPort(addr, strconv.Itoa(port))
	}
	return addr
}
