package remote

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"gotycoon/client"
)

// follow applies the source's log until a signal ends the run, or with -switch until the clients
// can move. One connection serves the whole run: an original reads its newest log file from the
// beginning for each new one.
func (m *migration) follow(ctx context.Context) error {
	f, err := m.newFeed(ctx)
	if err != nil {
		return err
	}
	s := &switching{migration: m, feed: f}
	s.next = s.catchUp
	m.tail.beat = func(ctx context.Context, ts uint64) (bool, error) { return s.next(ctx, ts) }
	err = f.run(ctx)
	if ctx.Err() == nil && s.ready {
		err = errors.Join(err, f.save(ctx))
	}
	return errors.Join(err, s.end(ctx))
}

// newFeed makes the feed of the source's log. It has a client of its own, for the connection that
// stays.
func (m *migration) newFeed(ctx context.Context) (*feed, error) {
	now, err := serverTime(ctx, m.source.client)
	if err != nil {
		return nil, fmt.Errorf("DB::report failed: %s: %w", m.source.name, err)
	}
	m.tail = &tail{writer: m.writer, lanes: map[uint16]*lane{}, ahead: time.Until(now)}
	for _, l := range m.lanes {
		m.tail.lanes[l.From] = l
	}
	log, err := m.endpoint(m.args[0])
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(log.name)
	if err == nil {
		*m.port, err = strconv.ParseInt(port, 10, 64)
	}
	if err != nil {
		return nil, err
	}
	m.follower.host, m.follower.client = host, log.client // End closes it
	m.follower.white, m.follower.wait, m.follower.limits = new(false), new(true), m.silence()
	return &feed{follower: m.follower, to: m.tail, file: m.file, at: m.file.at(), pause: firstPause}, nil
}

// switching leads through the switch. Each heartbeat of the source calls its next step:
//
//	catchUp ─► (-switch) guard ─► drain ─► verifying ─► confirm ─► finish
//	   │                           ▲                       │
//	   └─► for ever                └── there were updates ─┘
//
// The log is followed meanwhile, so an update that somebody still makes shows.
type switching struct {
	*migration
	feed    *feed
	next    func(ctx context.Context, beat uint64) (done bool, err error)
	ready   bool   // clients can move
	guarded bool   // the source was made read-only
	until   uint64 // stamp that ends a step
	seen    int64  // updates applied before the comparison

	cancel   context.CancelFunc // ends the comparison
	verified chan error         // has its result; nil: none is under way
	report   bytes.Buffer       // what it prints
}

// catchUp waits until the lag is small.
func (s *switching) catchUp(ctx context.Context, _ uint64) (bool, error) {
	if s.tail.lag() > s.near {
		return false, nil
	}
	s.tell("caught up: %s has what %s had up to ts=%d, %d updates applied", s.target.name, s.source.name, s.tail.reached, s.tail.applied)
	if !s.switches {
		s.tell("now is a good time to switch: end this run with ^C, and run it again with -switch")
		s.next = func(context.Context, uint64) (bool, error) { return false, nil }
		return false, nil
	}
	s.guard(ctx)
	return false, s.drainTo(ctx)
}

// guard makes the source read-only. An original cannot be: it would take the call for another one,
// which ends its replication, so the call is sent only to a server whose log has an identity.
func (s *switching) guard(ctx context.Context) {
	if s.feed.at.logID != "" {
		err := s.source.client.SetReadOnly(ctx, true)
		if err == nil {
			s.guarded = true
			s.tell("%s refuses updates from now on", s.source.name)
			return
		}
		fmt.Fprintf(s.stderr, "%s: %s cannot be made read-only: %v\n", program, s.source.name, err)
	}
	s.tell("stop now whoever writes to %s; the switch goes on when it has had no update for %v", s.source.name, s.quiet)
}

// drainTo makes drain the next step, up to what the source has at the present moment.
func (s *switching) drainTo(ctx context.Context) (err error) {
	s.until, err = s.present(ctx)
	s.next = s.drain
	return err
}

// present returns the present moment of the source as a stamp.
func (s *switching) present(ctx context.Context) (uint64, error) {
	now, err := serverTime(ctx, s.source.client)
	return stampOf(now), err
}

// drain waits until everything is there: up to the moment when the source became read-only, or
// until it has had no update for a while. Then the comparison begins.
func (s *switching) drain(ctx context.Context, beat uint64) (bool, error) {
	if !s.guarded && beat < max(s.until, s.tail.newest)+uint64(s.quiet) || beat < s.until {
		return false, nil
	}
	s.seen = s.tail.applied
	s.next = s.verifying
	ctx, s.cancel = context.WithCancel(ctx)
	s.verified = make(chan error, 1)
	if s.verify != verifyNone {
		s.tell("comparing the records")
	}
	go func() { s.verified <- s.compare(ctx, &s.report) }() // end waits for it
	return false, nil
}

// verifying waits for the comparison. A difference may come from an update that was made meanwhile;
// then confirm will see the update.
func (s *switching) verifying(ctx context.Context, _ uint64) (bool, error) {
	select {
	case err := <-s.verified:
		s.verified = nil
		s.cancel()
		if err != nil && s.tail.applied == s.seen {
			return false, errors.Join(s.print(), err)
		}
	default:
		return false, nil
	}
	var err error
	s.until, err = s.present(ctx)
	s.next = s.confirm
	return false, err
}

// print prints what the comparison has found.
func (s *switching) print() error {
	_, err := s.report.WriteTo(s.out)
	return errors.Join(err, s.out.Flush())
}

// confirm waits until everything that the source had after the comparison is there, which should be
// no update.
func (s *switching) confirm(ctx context.Context, beat uint64) (bool, error) {
	if beat < s.until {
		return false, nil
	}
	if n := s.tail.applied - s.seen; n > 0 {
		s.report.Reset()
		s.tell("%s is still written to: %d updates came while it was compared", s.source.name, n)
		return false, s.drainTo(ctx)
	}
	s.ready = true
	return true, s.print()
}

// end waits for a comparison that is under way, and says what to do now. The source stays read-only
// only if clients can move.
func (s *switching) end(ctx context.Context) error {
	if s.verified != nil {
		s.cancel()
		<-s.verified
	}
	if s.ready {
		if s.guarded {
			s.tell("%s stays read-only (ktremotemgr tunerepl -rw ends that)", s.source.name)
		}
		return s.finish(ctx)
	}
	if !s.guarded {
		return nil
	}
	if err := s.source.client.SetReadOnly(context.WithoutCancel(ctx), false); err != nil {
		return fmt.Errorf("%s is still read-only (tunerepl -rw ends that): %w", s.source.name, err)
	}
	s.tell("%s takes updates again", s.source.name)
	return nil
}

// compare verifies that both servers have the same records. Its lines are those of ktremotemgr
// compare. It prints nothing by itself: the status is printed meanwhile.
func (m *migration) compare(ctx context.Context, report *bytes.Buffer) error {
	if m.verify == verifyNone {
		return nil
	}
	own := *m.call
	own.out, own.stderr = bufio.NewWriter(report), report
	p := &comparison{list: true, some: m.some(), pair: pair{
		call: &own, rounds: 3, wait: 30 * time.Second,
		sides: [2]*client.Client{m.source.client, m.target.client}, names: [2]string{m.source.name, m.target.name},
	}}
	worst := equal
	for _, l := range m.lanes {
		p.other = strconv.Itoa(int(l.To))
		v, err := p.database(ctx, strconv.Itoa(int(l.From)))
		if err != nil {
			return err
		}
		worst = max(worst, v)
	}
	switch {
	case worst == equal:
		return nil
	case m.merge:
		fmt.Fprintln(report, "with -merge the target may have records that the source does not have")
		return nil
	}
	fmt.Fprintln(report, "the servers differ: do not switch")
	return worst.exit()
}

// finishOnce ends a migration without a log.
func (m *migration) finishOnce(ctx context.Context) error {
	var report bytes.Buffer
	err := m.compare(ctx, &report)
	if _, e := report.WriteTo(m.out); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	m.done = true
	m.tell("done: %s has the records of %s", m.target.name, m.source.name)
	return m.file.remove()
}

// finish says what to do now, and how to come back.
func (m *migration) finish(ctx context.Context) error {
	m.done = true
	m.tell("switch now: %s has everything. Let the clients use it.", m.target.name)
	at, err := firstPosition(ctx, m.target.client)
	switch {
	case errors.Is(err, client.ErrNoLog):
		m.tell("%s keeps no update log (-ulog), so there is no way back but a copy", m.target.name)
	case err != nil:
		fmt.Fprintf(m.stderr, "%s: the way back is not known: read the update log of %s: %v\n", program, m.target.name, err)
	default:
		m.tell("the way back, as long as %s has its log: %s migrate -ts %d %s %s%s", m.target.name, program, at.stamp, m.args[1], m.args[0], m.backPairs())
	}
	return m.file.remove()
}

// backPairs are the pairs of databases for the way back.
func (m *migration) backPairs() (text string) {
	if len(m.args) > 2 {
		for _, l := range m.lanes {
			text += fmt.Sprintf(" %d=%d", l.To, l.From)
		}
	}
	return text
}
