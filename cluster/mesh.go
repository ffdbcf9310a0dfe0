package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"gotycoon/cluster/election"
)

const (
	// sendTimeout is how long a member may take no byte before its connection is given up.
	sendTimeout = 2 * time.Second
	// dialTimeout limits connecting to a member, dialPause is the pause behind a failure.
	dialTimeout = time.Second
	dialPause   = 100 * time.Millisecond
	// queueSize is how many messages wait for a connection. The elector repeats what is dropped.
	queueSize = 256
)

var (
	errAway  = errors.New("the member cannot be reached")
	errStale = errors.New("the connection to the member has ended before its answer")
)

// mesh is the connections of this member with all others: one for each direction, so that a member
// that can send and not receive disturbs nobody else. Messages of the elector and calls share them.
type mesh struct {
	dial   func(ctx context.Context, addr string) (net.Conn, error)
	handle func(from, method string, body json.RawMessage) (any, error)
	take   func(from string, msg []byte) // an elector's message
	log    *slog.Logger

	ctx  context.Context
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	links map[string]*link      // by the name of the other member
	open  map[net.Conn]struct{} // connections that others have opened
}

// link is what goes to one member: a goroutine connects and writes.
type link struct {
	mesh  *mesh
	name  string
	queue chan message

	mu      sync.Mutex
	away    bool // the latest try to connect has failed
	next    uint64
	waiting map[uint64]chan message // calls without an answer yet; closed when the connection ends
}

func newMesh(dial func(ctx context.Context, addr string) (net.Conn, error), log *slog.Logger) *mesh {
	m := &mesh{dial: dial, log: log, links: map[string]*link{}, open: map[net.Conn]struct{}{}}
	m.ctx, m.stop = context.WithCancel(context.Background())
	return m
}

// close ends all connections and returns when their goroutines have ended.
func (m *mesh) close() {
	m.stop()
	m.mu.Lock()
	for c := range m.open {
		c.Close()
	}
	m.mu.Unlock()
	m.done.Wait()
}

// link returns the link to a member, whose name is its address.
func (m *mesh) link(name string) *link {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.links[name]
	if l == nil && m.ctx.Err() == nil {
		l = &link{mesh: m, name: name, queue: make(chan message, queueSize), waiting: map[uint64]chan message{}}
		m.links[name] = l
		m.done.Go(l.run)
	}
	return l
}

// Send implements election.Transport: a message to a member that is slow or away is dropped.
func (m *mesh) Send(to election.Member, msg []byte) {
	if l := m.link(to.Name); l != nil {
		select {
		case l.queue <- message{kind: kindElection, body: msg}:
		default:
		}
	}
}

// call asks a member and decodes its answer into result.
func (m *mesh) call(ctx context.Context, to, method string, arg, result any) error {
	body, err := json.Marshal(arg)
	if err != nil {
		return err
	}
	if body, err = json.Marshal(call{Method: method, Body: body}); err != nil {
		return err
	}
	l := m.link(to)
	if l == nil {
		return errAway
	}
	answer, err := l.ask(ctx, body)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", to, err)
	case answer.kind == kindFailure:
		return fmt.Errorf("%s: %s", to, answer.body)
	}
	return json.Unmarshal(answer.body, result)
}

// ask sends a call and waits for its answer.
func (l *link) ask(ctx context.Context, body []byte) (message, error) {
	answer := make(chan message, 1)
	l.mu.Lock()
	if l.away {
		l.mu.Unlock()
		return message{}, errAway
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
	}
	select {
	case m, ok := <-answer:
		if !ok {
			return m, errStale
		}
		return m, nil
	case <-ctx.Done():
		return message{}, errAway
	}
}

func (l *link) forget(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, id)
}

// run connects to the member again and again, and sends what is queued.
func (l *link) run() {
	ctx := l.mesh.ctx
	for ctx.Err() == nil {
		dial, cancel := context.WithTimeout(ctx, dialTimeout)
		conn, err := l.mesh.dial(dial, l.name)
		cancel()
		l.note(err != nil)
		if err == nil {
			l.dropOld()
			l.serve(ctx, conn)
			continue
		}
		l.mesh.log.Debug("connecting to the member " + l.name + ": " + err.Error())
		select {
		case <-time.After(dialPause):
		case <-ctx.Done():
		}
	}
}

// dropOld drops the elector's messages that have waited while the member was away. The elector says
// them anew, and to a member that was removed and added again meanwhile they would be messages to
// its former self.
func (l *link) dropOld() {
	for range len(l.queue) {
		if m := <-l.queue; m.kind == kindCall {
			select {
			case l.queue <- m:
			default: // others have filled the queue: the call ends with its time
			}
		}
	}
}

// note notes whether the member can be reached. Those who wait for one that cannot learn it at
// once.
func (l *link) note(away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away = away; away {
		l.giveUp()
	}
}

// giveUp ends all waits. mu is held.
func (l *link) giveUp() {
	for id, c := range l.waiting {
		close(c)
		delete(l.waiting, id)
	}
}

// serve writes the queue to a connection, and reads the answers, until the connection ends.
func (l *link) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	ended := make(chan struct{})
	l.mesh.done.Go(func() {
		defer close(ended)
		l.answers(conn)
	})
	unhook := context.AfterFunc(ctx, func() { conn.Close() })
	defer unhook()
	w := writer{conn: conn}
	for {
		select {
		case m := <-l.queue:
			if w.send(m) != nil {
				<-ended
				return
			}
		case <-ended:
			return
		}
	}
}

// answers hands answers to those who wait. At the end of the connection nobody waits any more.
func (l *link) answers(conn net.Conn) {
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
			return
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

// accept begins to serve a connection that another member has opened.
func (m *mesh) accept(from string, conn net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		conn.Close()
		return
	}
	m.open[conn] = struct{}{}
	m.done.Go(func() { m.serve(from, conn) })
}

// serve serves a connection until it ends.
func (m *mesh) serve(from string, conn net.Conn) {
	var calls sync.WaitGroup
	// The elector writes to its disk before it answers. Calls do not wait for that.
	elections := make(chan []byte, queueSize)
	calls.Go(func() {
		for msg := range elections {
			m.take(from, msg)
		}
	})
	defer func() {
		conn.Close()
		close(elections)
		calls.Wait()
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.open, conn)
	}()
	r, w := bufio.NewReader(conn), &writer{conn: conn}
	for {
		msg, err := readMessage(r)
		switch {
		case err != nil:
			return
		case msg.kind == kindElection:
			select {
			case elections <- msg.body:
			default: // the elector says it anew
			}
		case msg.kind == kindCall:
			calls.Go(func() { _ = w.send(m.answer(from, msg)) })
		}
	}
}

// answer carries out a call.
func (m *mesh) answer(from string, msg message) message {
	var c call
	var result any
	err := json.Unmarshal(msg.body, &c)
	if err == nil {
		result, err = m.handle(from, c.Method, c.Body)
	}
	var body []byte
	if err == nil {
		body, err = json.Marshal(result)
	}
	if err != nil {
		return message{kindFailure, msg.id, []byte(err.Error())}
	}
	return message{kindReply, msg.id, body}
}
