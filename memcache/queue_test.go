package memcache

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
	"gotycoon/db/record"
)

func TestMessagesComeInTheirOrder(t *testing.T) {
	s := start(t, "opts=q#qtout=0.05", "%")
	c := s.dial(t)
	for i := range 100 {
		c.ask(fmt.Sprintf("set job 0 0 3\n%03d\n", i), "STORED\n")
	}
	for i := range 100 {
		c.ask("get job\n", fmt.Sprintf("VALUE job 0 3\n%03d\nEND\n", i))
	}
	c.ask("get job\n", "END\n")
	for range 100 {
		c.ask("delete job\n", "DELETED\n")
	}
	c.ask("delete job\n", "NOT_FOUND\n")
}

// Whoever waits longer is served first, and nobody sleeps beside a message.
func TestWaitersAreServedInTheirOrder(t *testing.T) {
	s := start(t, "opts=q#qtout=60", "%")
	var waiting []*client
	for i := range 5 {
		c := s.dial(t)
		c.send("get job\r\n")
		waiting = append(waiting, c)
		s.awaitWaiters(t, "job", i+1)
	}
	producer := s.dial(t)
	for i := range 5 {
		producer.ask(fmt.Sprintf("set job 0 0 1\n%d\n", i), "STORED\n")
	}
	for i, c := range waiting {
		c.expect(fmt.Sprintf("VALUE job 0 1\r\n%d\r\nEND\r\n", i))
	}
}

func (s *started) awaitWaiters(t *testing.T, name string, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.queues.mu.Lock()
		defer s.queues.mu.Unlock()
		l := s.queues.lines[name]
		return l != nil && len(l.waiters) == n
	}, patience, time.Millisecond)
}

// A waiter is woken by a message that a closing connection gives back, by a message of another
// protocol, and by a message with an old key.
func TestEveryArrivalWakes(t *testing.T) {
	s := start(t, "opts=q#qtout=60", "%")
	holder := s.dial(t)
	holder.ask("set job 0 100 1\n1\nget job\n", "STORED\nVALUE job 0 1\n1\nEND\n")
	waiter := s.dial(t)
	waiter.send("get job\r\n")
	s.awaitWaiters(t, "job", 1)
	holder.Close()
	waiter.expect("VALUE job 0 1\r\n1\r\nEND\r\n")
	for _, key := range []string{"job 5", "job 3", "job "} {
		waiter.send("get job\r\n")
		s.awaitWaiters(t, "job", 1)
		require.NoError(t, s.db.Set(nil, []byte(key), []byte("x"), record.Never))
		waiter.expect("VALUE job 0 1\r\nx\r\nEND\r\n")
	}
}

// An aborted transaction brings messages back that it had removed. A request that has searched in
// vain must search again from the beginning of its line, and new messages must come behind the
// messages that are back.
func TestAnAbortedTransactionWakes(t *testing.T) {
	for name, remove := range map[string]func(s *started, key []byte) error{
		"removed": func(s *started, key []byte) error { return s.db.Remove(nil, key) },
		"cleared": func(s *started, _ []byte) error { return s.db.Clear(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, "opts=q#qtout=60", "%")
			future := []byte("job 09990000000000 0001")
			require.NoError(t, s.db.Set(nil, future, []byte("x"), record.Never))
			tx, err := s.db.Begin(nil, false)
			require.NoError(t, err)
			tx.Share()
			require.NoError(t, remove(s, future))
			c := s.dial(t)
			c.ask("set job 0 0 1\ny\n", "STORED\n") // gone with the transaction
			w := &waiter{poke: make(chan struct{}, 1)}
			line := s.queues.join("job", w)
			s.queues.mu.Lock()
			line.from, line.looked = []byte("job 1"), time.Now() // as after a search
			s.queues.mu.Unlock()
			require.NoError(t, tx.Abort())
			require.Len(t, w.poke, 1, "the waiter is woken")
			c.ask("set job 0 0 1\nz\n", "STORED\n")
			claim, err := s.queues.claim(nil, nil, line, []byte("job"))
			require.NoError(t, err)
			require.Equal(t, string(future), string(claim.Key))
			s.queues.leave("job", line, w)
			c.ask("get job\n", "VALUE job 0 1\nz\nEND\n")
		})
	}
}

// A commit that is refused brings messages back too.
func TestARefusedCommitWakes(t *testing.T) {
	s := start(t, "opts=q#qtout=60", "%")
	require.NoError(t, s.db.Set(nil, []byte("job 1"), []byte("x"), record.Never))
	tx, err := s.db.Begin(nil, false)
	require.NoError(t, err)
	tx.Share()
	require.NoError(t, s.db.Remove(nil, []byte("job 1")))
	w := &waiter{poke: make(chan struct{}, 1)}
	line := s.queues.join("job", w)
	defer s.queues.leave("job", line, w)
	require.NoError(t, s.catalog.SetGuarded(true))
	require.ErrorIs(t, tx.Commit(nil), dberr.ErrReadOnly)
	require.Len(t, w.poke, 1)
}

func TestStopWakesWaiters(t *testing.T) {
	s := start(t, "opts=q#qtout=600", "%")
	c := s.dial(t)
	c.send("get job other\r\n")
	s.awaitWaiters(t, "job", 1)
	begun := time.Now()
	require.NoError(t, s.Close())
	require.Less(t, time.Since(begun), patience)
	c.expect("END\r\n")
	c.ended()
}

func TestEarlierRepliesDoNotWaitForMessages(t *testing.T) {
	s := start(t, "opts=q#qtout=60", "%")
	c := s.dial(t)
	c.send("version\r\nget job\r\n")
	c.expect("VERSION " + Version + "\r\n")
}

func TestMessagesOfAReversedOrder(t *testing.T) {
	s := start(t, "opts=q#qtout=0.05", "%#rcomp=dec")
	c := s.dial(t)
	c.ask("set job 0 0 1\nx\nget job\ndelete job\n", "STORED\nVALUE job 0 1\nx\nEND\nDELETED\n")
}

// TestSoak runs producers and workers on several names. Workers die at random moments. Every
// message must be finished at least once, and never be held by two live workers at a time.
func TestSoak(t *testing.T) {
	length := 2 * time.Second
	if os.Getenv("GOTYCOON_BIG") != "" {
		length = 3 * time.Minute
	}
	s := start(t, "opts=fq#qtout=0.02", "%")
	k := &soak{addr: s.addr, held: map[string]int{}, finished: map[string]bool{}}
	end := time.Now().Add(length)
	var producers, workers sync.WaitGroup
	for i := range 3 {
		producers.Go(func() { k.produce(i, end) })
	}
	for i := range 8 {
		workers.Go(func() { k.work(uint64(i)) })
	}
	producers.Wait()
	require.Eventually(t, func() bool { return k.done() || k.problem() != "" }, length+30*time.Second, 10*time.Millisecond, "messages are lost")
	k.stop.Store(true)
	workers.Wait()
	require.Empty(t, k.problem())
	// The last workers give messages back, as soon as the server notices that they are gone.
	last := newSoakConn(s.dial(t))
	require.Eventually(t, func() bool { return k.drained(s, last) || k.problem() != "" }, 3*patience, 10*time.Millisecond, "messages are left")
	require.Empty(t, k.problem())
	t.Logf("%d messages, %d deliveries, %d workers killed", len(k.finished), k.deliveries, k.kills)
}

// drained takes what the queues have now, and reports whether nothing is left.
func (k *soak) drained(s *started, last *soakConn) bool {
	for name := range soakNames {
		for last.message(name) != "" {
			if reply := last.request("delete q%d\r\n", name); reply != "DELETED" {
				k.fail("delete: %q", reply)
				return false
			}
		}
	}
	n, err := s.db.Count(nil)
	if err != nil {
		k.fail("%v", err)
	}
	return err == nil && n == 0
}

// soak is what the soak knows of its messages.
type soak struct {
	addr string
	stop atomic.Bool

	mu                       sync.Mutex
	produced                 int
	held                     map[string]int // message to the live worker that has it
	finished                 map[string]bool
	wrong                    string
	deliveries, kills, alive int
}

const soakNames = 3

func (k *soak) problem() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.wrong
}

func (k *soak) fail(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.wrong == "" {
		k.wrong = fmt.Sprintf(format, args...)
	}
}

func (k *soak) done() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.finished) == k.produced
}

// backlog is how far the workers are behind.
func (k *soak) backlog() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.produced - len(k.finished)
}

func (k *soak) connect() *soakConn {
	c, err := net.Dial("tcp4", k.addr)
	if err != nil {
		k.fail("%v", err)
		return nil
	}
	_ = c.SetDeadline(time.Now().Add(10 * time.Minute))
	return newSoakConn(c)
}

func (k *soak) produce(id int, end time.Time) {
	c := k.connect()
	defer c.Close()
	for i := 0; time.Now().Before(end) && k.problem() == ""; i++ {
		for k.backlog() > 1000 {
			time.Sleep(time.Millisecond) //lint:sleep the workers catch up
		}
		text := fmt.Sprintf("message-%d-%d", id, i)
		if reply := c.request("set q%d 0 0 %d\r\n%s\r\n", i%soakNames, len(text), text); reply != "STORED" {
			k.fail("set: %q", reply)
			return
		}
		k.mu.Lock()
		k.produced++
		k.mu.Unlock()
	}
}

// work plays one worker after the other. A worker dies while it waits, while it holds a message, or
// after it has asked to delete a message.
func (k *soak) work(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	for !k.stop.Load() && k.problem() == "" {
		k.mu.Lock()
		k.alive++
		id := k.alive
		k.mu.Unlock()
		c := k.connect()
		if c == nil {
			return
		}
		k.life(id, r, c)
		c.Close()
	}
}

func (k *soak) life(id int, r *rand.Rand, c *soakConn) {
	for range 1 + r.IntN(30) {
		name := r.IntN(soakNames)
		if r.IntN(50) == 0 { // dies while it waits
			c.say("get q%d\r\n", name)
			k.killed()
			return
		}
		text := c.message(name)
		if text == "" {
			if k.stop.Load() {
				return
			}
			continue
		}
		k.hold(text, id)
		switch r.IntN(20) {
		case 0: // dies with it
			k.release(text, id)
			k.killed()
			return
		case 1: // dies after delete, whose reply it does not see: it may be finished or come again
			k.release(text, id)
			k.finish(text)
			c.say("delete q%d\r\n", name)
			k.killed()
			return
		}
		k.release(text, id)
		k.finish(text)
		if reply := c.request("delete q%d\r\n", name); reply != "DELETED" {
			k.fail("delete: %q", reply)
		}
	}
}

func (k *soak) killed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kills++
}

func (k *soak) hold(text string, id int) {
	k.mu.Lock()
	other, double := k.held[text]
	k.held[text] = id
	k.deliveries++
	k.mu.Unlock()
	if double {
		k.fail("%s is at worker %d and at worker %d", text, other, id)
	}
}

// release comes before the worker's last action: whoever gets the message after that is right.
func (k *soak) release(text string, _ int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, text)
}

func (k *soak) finish(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.finished[text] = true
}
