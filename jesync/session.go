package jesync

import "sync"

// maxLines is how many bytes of lines others may leave with a session. More means that it does not read: its connection is ended.
const maxLines = 16 << 20

// session is what the table knows of a connection: its requests, and the lines for it. Its lock comes after that of a shard.
type session struct {
	address string // of the client
	push    func() // sends lines soon, without waiting; called under no lock

	mu       sync.Mutex // protects the fields below
	requests map[*key]*request
	lines    []byte // not yet sent
	overflow bool   // there were more lines than maxLines
}

func (s *session) find(k *key) *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[k]
}

func (s *session) add(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests == nil {
		s.requests = map[*key]*request{}
	}
	s.requests[r.key] = r
}

func (s *session) remove(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.requests, r.key)
}

// all returns the requests. Others may end them at any time; nobody but the session's connection adds any.
func (s *session) all() []*request {
	s.mu.Lock()
	defer s.mu.Unlock()
	rs := make([]*request, 0, len(s.requests))
	for _, r := range s.requests {
		rs = append(rs, r)
	}
	return rs
}

// step is one step of the table: what a session does, or the passing of time.
type step struct {
	now  int64      // nanoseconds since the start
	by   *session   // nil for the time
	told []*session // sessions with new lines, but for by
}

// tell leaves a line with a session.
func (st *step) tell(s *session, name string, r reply) {
	s.mu.Lock()
	if s != st.by && len(s.lines) > maxLines { // its own are sent before there are more
		s.overflow = true
	} else {
		s.lines = appendReply(s.lines, name, r)
	}
	s.mu.Unlock()
	if s != st.by {
		st.told = append(st.told, s)
	}
}

// deliver has the lines sent that were left with other sessions. No lock is held.
func (st *step) deliver() {
	for i, s := range st.told {
		s.push()
		st.told[i] = nil
	}
	st.told = st.told[:0]
}
