package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"gotycoon/cluster/election"
)

const (
	// sendTimeout is how long a member may take no byte before its connection is given up.
	sendTimeout = 2 * time.Second
	// dialTimeout limits connecting to a member.
	dialTimeout = time.Second
	// queueSize is how many messages wait for a connection. The elector repeats what is dropped.
	queueSize = 256
	// linkIdle is how long the link to a server that is no member, or no more, is kept.
	linkIdle = 10 * time.Second
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

	versions greeting // that this program speaks

	ctx  context.Context
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	links map[string]*link      // by the name of the other member
	open  map[net.Conn]struct{} // connections that others have opened

	unheard map[string]string // why a member is not heard, by its name, as the log has it
}

func newMesh(dial func(ctx context.Context, addr string) (net.Conn, error), log *slog.Logger) *mesh {
	m := &mesh{dial: dial, log: log, versions: greeting{newestVersion, oldestVersion}, links: map[string]*link{}, open: map[net.Conn]struct{}{},
		unheard: map[string]string{}}
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
		l = newLink(m, name)
		m.links[name] = l
		m.done.Go(l.run)
	}
	if l != nil {
		l.used = time.Now()
	}
	return l
}

// keep ends the links to servers that are no members, or no more, when nobody has used them lately.
func (m *mesh) keep(members []election.Member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, l := range m.links {
		belongs := slices.ContainsFunc(members, func(one election.Member) bool { return one.Name == name })
		if !belongs && time.Since(l.used) > linkIdle && !l.busy() {
			l.stop()
			delete(m.links, name)
		}
	}
}

// unreached says why messages do not reach a member; empty: they do, as far as is known.
func (m *mesh) unreached(name string) string {
	m.mu.Lock()
	l := m.links[name]
	m.mu.Unlock()
	if l == nil {
		return ""
	}
	return l.unreached()
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
	case answer.kind == kindMistake:
		return &Mistake{string(answer.body)}
	}
	return json.Unmarshal(answer.body, result)
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
	if l := m.links[from]; l != nil {
		l.hurry() // it is there again
	}
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
		case msg.kind == kindGreeting:
			if w.send(m.versions.message()) != nil || m.greeted(from, msg.body) != nil {
				return
			}
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
	if mistake, ok := errors.AsType[*Mistake](err); ok {
		return message{kindMistake, msg.id, []byte(mistake.Error())}
	}
	if err != nil {
		return message{kindFailure, msg.id, []byte(err.Error())}
	}
	return message{kindReply, msg.id, body}
}
