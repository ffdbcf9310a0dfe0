package lock

func (s *session) add(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.place = len(s.requests)
	s.requests = append(s.requests, r)
}

// keepRequests is the largest capacity of requests that is kept while there are none.
const keepRequests = 1 << 8

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

// keys returns the keys of the requests. Other sessions and the clock may end these requests at any
// time; only the session's own connection adds requests.
func (s *session) keys() []*key {
	s.mu.Lock()
	defer s.mu.Unlock()
	ks := make([]*key, len(s.requests))
	for i, r := range s.requests {
		ks[i] = r.key
	}
	return ks
}

// say adds lines that the session's own step has caused. The goroutine of the session's steps calls
// it.
func (s *session) say(add func([]byte) []byte) {
	if !s.left.Load() {
		s.own = add(s.own)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(add(s.lines))
}

// leave replaces lines and sets left. The caller holds mu.
func (s *session) leave(lines []byte) {
	s.lines = lines
	s.left.Store(len(lines) > 0)
}

// gathered returns how many bytes of lines there are. The goroutine of the session's steps calls
// it.
func (s *session) gathered() int {
	if !s.left.Load() {
		return len(s.own)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.own) + len(s.lines)
}

// maxLines is how many bytes of lines other sessions and the clock may leave with a session. A
// client with more does not read: its connection is closed.
const maxLines = 16 << 20

// step is one step of the table: a command of a session, or the passing of time.
type step struct {
	now  int64      // nanoseconds since the start
	by   *session   // nil: the passing of time
	told []*session // other sessions with new lines
}

// tell leaves a line with a session.
func (st *step) tell(s *session, name string, r reply) {
	if s == st.by { // its connection sends own lines before they become too many
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

// deliverEvery is how many sessions may have undelivered lines while a long step goes on.
const deliverEvery = 64

// deliver asks the sessions that have got new lines to send them. The caller holds no lock.
func (st *step) deliver() {
	for i, s := range st.told {
		s.push()
		st.told[i] = nil
	}
	st.told = st.told[:0]
}
