package compat

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// runner replays cases against one server.
type runner struct {
	addr string
	port int
	dbs  int

	settle func() error // is called before bytes are sent; nil: nothing is waited for

	excused map[string]bool // cases that were replayed again because the machine stood still

	watching sync.WaitGroup
	mu       sync.Mutex
	late     []string // what came behind the ends of cases
}

// A machine that stands still for a moment shifts the times of a case: a client that waits for a
// signal may come after the signal, and a record may expire before it is read. Only such a case,
// and only if the machine has been seen to stand still meanwhile, is replayed again when it differs.
const (
	attempts    = 4
	stoodStill  = 50 * time.Millisecond // for so long, by a goroutine that only sleeps
	stillLook   = 5 * time.Millisecond  // its sleeps
	mostExcused = 3                     // cases of a runner that may be replayed again
)

// run replays one case and says what differed, or nothing.
func (r *runner) run(c *goldenCase) (difference string) {
	difference, _ = r.attempt(c)
	return difference
}

// runInTime is run for a machine that may stand still. A case that needs what earlier ones have left
// is replayed once: nobody can bring that back.
func (r *runner) runInTime(c *goldenCase) (difference string) {
	for range attempts {
		var excused bool
		if difference, excused = r.attempt(c); difference == "" || c.NoClear || !excused || !r.excuse(c) {
			break
		}
	}
	return difference
}

// excuse notes that a case is replayed again, and reports whether it may be.
func (r *runner) excuse(c *goldenCase) bool {
	if r.excused == nil {
		r.excused = map[string]bool{}
	}
	r.excused[c.id().String()] = true
	return len(r.excused) <= mostExcused
}

// attempt replays one case. A difference is excused by the machine alone: a server that does not
// answer in time is not.
func (r *runner) attempt(c *goldenCase) (difference string, excused bool) {
	if !c.NoClear {
		if err := r.clear(); err != nil {
			return err.Error(), false
		}
	}
	if c.onTheSecond() {
		awaitEarlySecond()
	}
	still := watchStill()
	begun := time.Now()
	replay := replay{
		runner: r,
		clock:  clock{now: begun.Unix(), port: r.port},
		conns:  map[string]*replayConn{},
	}
	difference = replay.run(c.all())
	stood := still()
	excused = (c.onTheSecond() || c.waits()) && stood >= stoodStill && time.Since(begun) < answerLimit
	r.watch(c, replay.conns, difference != "")
	return difference, excused
}

// watchStill returns a function that ends the watch, and returns for how long at most the process
// has stood still since.
func watchStill() (longest func() time.Duration) {
	end, worst := make(chan struct{}), make(chan time.Duration, 1)
	go func() {
		most := time.Duration(0)
		for {
			begun := time.Now()
			select {
			case <-end:
				worst <- max(most, time.Since(begun)-stillLook)
				return
			case <-time.After(stillLook):
				most = max(most, time.Since(begun)-stillLook)
			}
		}
	}()
	return func() time.Duration {
		close(end)
		return <-worst
	}
}

func (r *replay) run(steps []goldenStep) (difference string) {
	for i := range steps {
		if difference := r.step(&steps[i], needsSilence(steps[i:])); difference != "" {
			return fmt.Sprintf("step %d: %s", i, difference)
		}
	}
	return r.groups()
}

// watch looks for bytes behind the last answers of a case, and for connections closed behind them,
// while the next case begins. Afterwards it closes the connections. It does nothing for a case that
// differs already.
func (r *runner) watch(c *goldenCase, conns map[string]*replayConn, differs bool) {
	deadline := time.Now().Add(surplusLimit)
	for label, conn := range conns {
		look := func() {
			defer conn.Close()
			if differs || !conn.unwatched {
				return
			}
			for conn.fill(deadline) {
			}
			if len(conn.buf) > 0 || conn.eof {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.late = append(r.late, fmt.Sprintf("%s: behind the end on %s: %q, closed: %v", c.id(), label, conn.buf, conn.eof))
			}
		}
		if c.waits() {
			look() // whoever waits for a signal could get one of the next case
		} else {
			r.watching.Go(look)
		}
	}
}

// surplus returns what has come behind the ends of the cases so far.
func (r *runner) surplus() string {
	r.watching.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.late, "\n")
}

// clear empties the databases over a connection of its own.
func (r *runner) clear() error {
	c, err := dial(r.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range r.dbs {
		if err := c.request(fmt.Sprintf("GET /rpc/clear?DB=%d HTTP/1.1\r\n\r\n", i)); err != nil {
			return fmt.Errorf("clear database %d: %w", i, err)
		}
	}
	return nil
}

// request sends an HTTP request and waits for the response, whatever it is.
func (c *replayConn) request(p string) error {
	c.send(p, 0, 0)
	c.awaitResponses(1, false, time.Now().Add(answerLimit))
	if _, ok := responseLength(c.buf, false); !ok {
		return fmt.Errorf("no response but %q", c.buf)
	}
	c.buf = nil
	return nil
}

// awaitEarlySecond returns in the first third of a second, where the recordings were made.
func awaitEarlySecond() {
	for {
		if ms := time.Now().Nanosecond() / 1e6; 50 < ms && ms < 350 {
			return
		}
		time.Sleep(20 * time.Millisecond) //lint:sleep waits for the clock itself
	}
}

// needsSilence reports whether the runner must look for surplus bytes right after the first of steps.
// It need not if the next answer on the connection is compared byte for byte and is not empty: this
// answer would show the surplus bytes. Nor need it after the last answer, where watch looks.
func needsSilence(steps []goldenStep) bool {
	for _, next := range steps[1:] {
		if next.C == steps[0].C && (next.Recv != nil || next.Op == "close") {
			return next.Op == "close" || *next.Recv == "" || (next.Cmp != "" && next.Cmp != "exact")
		}
	}
	return false
}

// replay is one case being replayed.
type replay struct {
	*runner
	clock
	conns    map[string]*replayConn
	walks    group
	statuses group
}

func (r *replay) conn(label string) (*replayConn, error) {
	if c := r.conns[label]; c != nil {
		return c, nil
	}
	c, err := dial(r.addr)
	if err != nil {
		return nil, err
	}
	r.conns[label] = c
	return c, nil
}

func (r *replay) step(s *goldenStep, silence bool) (difference string) {
	switch s.Op {
	case "sleep":
		time.Sleep(time.Duration(s.MS) * time.Millisecond) //lint:sleep the recorded client paused here
		return ""
	case "close":
		_ = r.conns[s.C].Close()
		delete(r.conns, s.C)
		return ""
	}
	c, err := r.conn(s.C)
	if err != nil {
		return err.Error()
	}
	if s.Send != nil {
		if r.settle != nil {
			if err := r.settle(); err != nil {
				return err.Error()
			}
		}
		r.send(c, s)
	}
	if s.Op == "shut_wr" {
		c.shutWrite()
	}
	if s.Recv == nil {
		return ""
	}
	return r.receive(c, s, silence)
}

func (r *replay) send(c *replayConn, s *goldenStep) {
	gap := time.Duration(s.GapMS) * time.Millisecond
	if gap == 0 {
		gap = 5 * time.Millisecond
	}
	c.sent = string(*s.Send)
	c.send(r.expand(c.sent), s.Split, gap)
}

func (r *replay) receive(c *replayConn, s *goldenStep, silence bool) (difference string) {
	sent, want := c.sent, string(*s.Recv)
	got := c.receive(s, silence)
	c.unwatched = !silence && !s.EOF && want != ""
	switch s.Cmp {
	case "walk":
		r.walks.add(want, got, whole)
	case "status-one-of":
		r.statuses.add(want, got, statusOf)
	}
	if !r.matches(s, got) {
		return fmt.Sprintf("%s\n sent %.700q\n want %.700q\n got  %.700q", s.Cmp, sent, want, got)
	}
	if s.EOF != c.eof {
		return fmt.Sprintf("end of the connection: want %v, got %v after %.700q", s.EOF, c.eof, sent)
	}
	return ""
}

func (r *replay) groups() (difference string) {
	for name, g := range map[string]*group{"walk": &r.walks, "status-one-of": &r.statuses} {
		if !g.equal() {
			return fmt.Sprintf("group %s: want %.1000q, got %.1000q", name, g.want, g.got)
		}
	}
	return ""
}
