package jesync

import (
	"sync"
	"sync/atomic"
)

// maxLines is how many bytes of lines others may leave with a session. More means that it does not read: its connection is ended.
const maxLines = 16 << 20

// keepRequests is the room for requests that is kept when there are none.
const keepRequests = 1 << 8

// session is what the table knows of a connection: its requests, and the lines for it. Its lock comes after that of a shard.
//
// Lines that its own steps cause go into own, which needs no lock. Once others have left some, all go into lines until both have been
// sent: own always comes first.
type session struct {
	address string      // of the client
	push    func()      // sends lines soon, without waiting; called under no lock
	own     []byte      // not yet sent; belongs to the goroutine of the session's steps
	left    atomic.Bool // there are lines; changes under mu

	mu       sync.Mutex // protects the fields below
	requests []*request // in no order
	lines    []byte     // not yet sent
	overflow bool       // there were more lines than maxLines
}

func (s *session) add(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.place = len(s.requests)
	s.requests = append(s.requests, r)
}

func (s *session) remove(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := len(s.requests) - 1
	last := s.requests[end]
	s.requests[r.place], last.place = last, r.place
	s.requests[end] = nil
	s.requests = s.requests[:end]
	if end == 0 && cap(s.requests) > keepRequests {
		s.requests = nil
	}
}

// keys returns those of the requests. Others may end these at any time; nobody but the session's connection adds any.
func (s *session) keys() []*key {
	s.mu.Lock()
	defer s.mu.Unlock()
	ks := make([]*key, len(s.requests))
	for i, r := range s.requests {
		ks[i] = r.key
	}
	return ks
}

// say adds lines that the session's own step has caused.
func (s *session) say(add func([]byte) []byte) {
	if !s.left.Load() {
		s.own = add(s.own)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(add(s.lines))
}

// leave replaces lines. The caller holds mu.
func (s *session) leave(lines []byte) {
	s.lines = lines
	s.left.Store(len(lines) > 0)
}

// gathered is how many bytes of lines there are. It is called by the goroutine of the session's steps.
func (s *session) gathered() int {
	if !s.left.Load() {
		return len(s.own)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.own) + len(s.lines)
}

// step is one step of the table: what a session does, or the passing of time.
type step struct {
	now  int64      // nanoseconds since the start
	by   *session   // nil for the time
	told []*session // sessions with new lines, but for by
}

// tell leaves a line with a session.
func (st *step) tell(s *session, name string, r reply) {
	if s == st.by { // its own are sent before there are too many
		s.say(func(lines []byte) []byte { return appendReply(lines, name, r) })
		return
	}
	s.mu.Lock()
	if len(s.lines) > maxLines {
		s.overflow = true
	} else {
		s.leave(appendReply(s.lines, name, r))
	}
	s.mu.Unlock()
	st.told = append(st.told, s)
}

// deliver has the lines sent that were left with other sessions. No lock is held.
func (st *step) deliver() {
	for i, s := range st.told {
		s.push()
		st.told[i] = nil
	}
	st.told = st.told[:0]
}
