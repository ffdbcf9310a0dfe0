package cluster

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// A link tries to connect for as long as its member is one. Two kinds of failure are told apart. A
// member that is away (its address refuses connections, or does not answer) may be back any moment,
// and an election may wait for it: the pause stays short. A member that answers and does not let us
// in has another secret, or belongs to another cluster. That lasts until somebody mends it, and
// each try costs both sides a handshake: the pause grows. It ends early when that member connects
// to us (hurry), so one that refused only because it was starting or stopping is found again as
// soon as it is there.
const (
	shortPause = 100 * time.Millisecond
	longPause  = 2 * time.Second
	// tellAfter is how long a member is not reached before the log says so: servers are started one
	// after the other, and what one does that dies says nothing. tellEvery is the pause between
	// lines about a member that fails in several ways.
	tellAfter = 2 * time.Second
	tellEvery = 10 * time.Second
)

// errBrief is said of a member that is about to stop, for example.
var errBrief = errors.New("that member lets this member in, and ends the connection at once: its log says why")

// link is what goes to one member: a goroutine connects and writes.
type link struct {
	mesh  *mesh
	name  string
	queue chan message
	ctx   context.Context
	stop  context.CancelFunc
	early chan struct{} // ends the present pause
	used  time.Time     // guarded by mesh.mu

	mu      sync.Mutex
	trouble string    // why the latest try to connect has failed; empty: it has not
	since   time.Time // when tries began to fail
	told    string    // the trouble that the log has; empty: none since the latest connection
	toldAt  time.Time
	next    uint64
	waiting map[uint64]chan message // calls without an answer yet; closed when the connection ends
}

func newLink(m *mesh, name string) *link {
	l := &link{mesh: m, name: name, queue: make(chan message, queueSize), early: make(chan struct{}, 1), waiting: map[uint64]chan message{}}
	l.ctx, l.stop = context.WithCancel(m.ctx)
	return l
}

// ask sends a call and waits for its answer.
func (l *link) ask(ctx context.Context, body []byte) (message, error) {
	answer := make(chan message, 1)
	l.mu.Lock()
	if l.trouble != "" {
		err := fmt.Errorf("%w: %s", errAway, l.trouble)
		l.mu.Unlock()
		return message{}, err
	}
	l.next++
	id := l.next
	l.waiting[id] = answer
	l.mu.Unlock()
	defer l.forget(id)
	select {
	case l.queue <- message{kind: kindCall, id: id, body: body}:
	case <-ctx.Done():
		return message{}, errAway
	case <-l.ctx.Done():
		return message{}, errAway
	}
	select {
	case m, ok := <-answer:
		if !ok {
			return m, l.gone()
		}
		return m, nil
	case <-ctx.Done():
		return message{}, errAway
	case <-l.ctx.Done():
		return message{}, errAway
	}
}

func (l *link) forget(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, id)
}

// gone returns why a call has ended without an answer.
func (l *link) gone() error {
	if why := l.unreached(); why != "" {
		return fmt.Errorf("%w: %s", errAway, why)
	}
	return errStale
}

// busy reports whether somebody waits for an answer.
func (l *link) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting) > 0
}

// hurry has the link connect now if it pauses.
func (l *link) hurry() {
	select {
	case l.early <- struct{}{}:
	default:
	}
}

// run connects to the member again and again, and sends what is queued.
func (l *link) run() {
	pause, brief := shortPause, false
	for first := true; l.ctx.Err() == nil; first = false {
		dial, cancel := context.WithTimeout(l.ctx, dialTimeout)
		conn, err := l.mesh.dial(dial, l.name)
		cancel()
		if err == nil {
			l.reached()
			// What made this link has not waited. It may be the one message by which a member
			// that has just started asks for the leadership that was handed to it.
			if !first {
				l.dropOld()
			}
			began, before := time.Now(), brief
			err = l.serve(conn)
			if brief = time.Since(began) < shortPause; err == nil && (!brief || !before) {
				continue
			}
			err = cmp.Or(err, errBrief)
		}
		l.failed(err)
		if errors.Is(err, errBrief) || isAway(err) {
			pause = shortPause
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, longPause)
		case <-l.early:
			pause = shortPause
		case <-l.ctx.Done():
		}
	}
}

// dropOld drops the elector's messages that have waited while the member was away. The elector says
// them anew, and to a member that was removed and added again meanwhile they would be messages to
// its former self. Calls go with them whose callers wait no more: an order must not be carried out
// after somebody was told that it failed.
func (l *link) dropOld() {
	for range len(l.queue) {
		if m := <-l.queue; m.kind == kindCall && l.awaited(m.id) {
			select {
			case l.queue <- m:
			default: // others have filled the queue: the call ends with its time
			}
		}
	}
}

// awaited reports whether somebody waits for the answer to a call.
func (l *link) awaited(id uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, waits := l.waiting[id]
	return waits
}

// reached notes that there is a connection.
func (l *link) reached() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told != "" {
		l.mesh.log.Warn("cluster: " + l.name + " is reached again")
	}
	l.trouble, l.told = "", ""
}

// failed notes why the member cannot be reached. Those who wait for it learn it at once.
func (l *link) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.trouble == "" {
		l.since = now
	}
	l.trouble = plainly(err)
	l.giveUp()
	if l.ctx.Err() == nil && now.Sub(l.since) >= tellAfter && l.trouble != l.told && now.Sub(l.toldAt) >= tellEvery {
		l.told, l.toldAt = l.trouble, now
		l.mesh.log.Warn("cluster: " + l.name + " cannot be reached: " + l.trouble)
	}
}

// unreached says why the member cannot be reached; empty: it can, as far as is known.
func (l *link) unreached() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trouble
}

// giveUp ends all waits. mu is held.
func (l *link) giveUp() {
	for id, c := range l.waiting {
		close(c)
		delete(l.waiting, id)
	}
}

// serve writes the queue to a connection, and reads the answers, until the connection ends. It
// returns an error if the member's program does not fit.
func (l *link) serve(conn net.Conn) error {
	defer conn.Close()
	ended := make(chan error, 1)
	l.mesh.done.Go(func() { ended <- l.answers(conn) })
	unhook := context.AfterFunc(l.ctx, func() { conn.Close() })
	defer unhook()
	w := writer{conn: conn}
	if w.send(l.mesh.versions.message()) != nil {
		return <-ended
	}
	for {
		select {
		case m := <-l.queue:
			if w.send(m) != nil {
				return <-ended
			}
		case err := <-ended:
			return err
		}
	}
}

// answers hands answers to those who wait. At the end of the connection nobody waits any more. It
// returns an error if the member's program does not fit.
func (l *link) answers(conn net.Conn) error {
	defer func() {
		conn.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.giveUp()
	}()
	r := bufio.NewReader(conn)
	for {
		m, err := readMessage(r)
		if err != nil {
			return nil
		}
		if m.kind == kindGreeting {
			if err := l.mesh.greeted(l.name, m.body); err != nil {
				return err
			}
			continue
		}
		l.mu.Lock()
		c := l.waiting[m.id]
		delete(l.waiting, m.id)
		l.mu.Unlock()
		if c != nil {
			c <- m
		}
	}
}
