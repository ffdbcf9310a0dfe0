package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// askTime is how long a server may take to tell its role.
	askTime = 2 * time.Second
	// lateTime is how much longer others may take than the primary.
	lateTime = 100 * time.Millisecond
)

// role is what a server says of itself.
type role struct {
	of      *Client
	primary bool
	replica bool
	lag     float64 // in seconds; negative: not known
	term    int64
	text    string // for an error
	err     error
}

// ask asks a server for its role. Servers of earlier versions, and those of the original, tell only
// their master.
func ask(ctx context.Context, c *Client) role {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	rows, err := c.Report(ctx)
	if err != nil {
		return role{of: c, text: err.Error(), err: err}
	}
	r := role{of: c, term: rows.Int("repl_role_term"), lag: -1}
	if lag, err := strconv.ParseFloat(string(rows["repl_lag_seconds"]), 64); err == nil {
		r.lag = lag
	}
	switch said := string(rows["repl_role"]); {
	case said != "":
		r.primary, r.replica, r.text = said == "primary", said == "replica", said
	case len(rows["repl_master_host"]) > 0:
		r.replica, r.text = true, "replica"
	default:
		r.primary, r.text = string(rows["repl_read_only"]) != "true", "refuses updates"
	}
	if state := string(rows["repl_state"]); r.replica && state != "" && state != "streaming" {
		r.replica = false // what it has may be incomplete or old
		r.text += ", " + state
	}
	return r
}

// look asks for the roles and notes them. It returns nil when there is a primary. Only one
// goroutine looks at a time; the others take over what it has found.
func (s *servers) look(ctx context.Context) error {
	select {
	case s.search <- struct{}{}:
		defer func() { <-s.search }()
	case <-ctx.Done():
		return networkError(context.Cause(ctx))
	}
	c, fresh := s.known(time.Now())
	if c != nil && fresh {
		return nil
	}
	if c != nil && !s.opts.ReadReplicas { // usually it is still the primary
		if r := ask(ctx, c); s.accepts(r) {
			s.note(r.of, nil, r.term)
			return nil
		}
		s.leave(c)
	}
	return s.lookAtAll(ctx)
}

// accepts reports whether a server is the primary. One with an older term than another has told is
// none, whatever it believes.
func (s *servers) accepts(r role) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.primary && r.term >= s.term
}

func (s *servers) note(primary *Client, readers []*Client, term int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.primary, s.readers, s.checked = primary, readers, time.Now()
	s.term = max(s.term, term)
}

// lookAtAll asks all servers at once. The first primary that answers is taken, so that a server
// which hangs delays nobody. Where servers are elected, others have a moment to tell a newer term.
func (s *servers) lookAtAll(ctx context.Context) error {
	asking, cancel := context.WithCancel(ctx)
	answers := make(chan role, len(s.all))
	for _, c := range s.all {
		go func() { answers <- ask(asking, c) }()
	}
	var primary *Client
	var term int64
	var readers []*Client
	var said []string
	var closed bool
	late := make(<-chan time.Time)
	defer cancel()
	for left := len(s.all); left > 0; {
		select {
		case r := <-answers:
			left--
			closed = closed || errors.Is(r.err, errClosed)
			switch {
			case s.accepts(r) && (primary == nil || r.term > term):
				primary, term = r.of, r.term
				if !s.opts.ReadReplicas && term == 0 {
					cancel() // the others end at once
				}
				late = time.After(lateTime)
			case r.replica && (s.opts.MaxLag == 0 || r.lag >= 0 && r.lag <= s.opts.MaxLag.Seconds()):
				readers = append(readers, r.of)
			}
			said = append(said, fmt.Sprintf("%s: %s", r.of.addr, r.text))
		case <-late:
			cancel()
		}
	}
	switch {
	case primary != nil:
		s.note(primary, readers, term)
		return nil
	case closed:
		return networkError(errClosed)
	case ctx.Err() != nil:
		return networkError(context.Cause(ctx))
	}
	return s.noPrimary(strings.Join(said, "; "))
}
