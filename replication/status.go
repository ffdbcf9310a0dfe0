package replication

import (
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/ulog"
)

// Status is what a follower tells about its replication.
type Status struct {
	State    State
	Position ulog.Stamp // in the master's log
	Seconds  float64    // how long something has been lacking here; 0: nothing is; Unknown before the first contact
	Records  int64      // updates that the master still has; Unknown, unless it is a server of this kind
	Contact  time.Time  // when the master was last heard of; zero: not yet
	Updates  int64      // applied since the start
	Bytes    int64      // of them, as they came
	Dropped  int64      // updates that had been here before on another way
	Copy     CopyStatus // with the state Copying
	Trouble  string     // why the state is Gap or Stalled, or there is no connection
}

// CopyStatus is how far a copy is.
type CopyStatus struct {
	DB      int   // number of the database
	Records int64 // that have come
	Total   int64 // that the master has
	Bytes   int64
}

// status is what run tells others.
type status struct {
	position atomic.Uint64 // a ulog.Stamp: everything up to it is applied and safe
	updates  atomic.Int64
	bytes    atomic.Int64
	dropped  atomic.Int64
	heard    atomic.Int64 // UnixNano of the last message; 0: none
	had      atomic.Int64 // UnixNano of the last moment at which everything was here; 0: none
	complete atomic.Bool  // the last message was a heartbeat, and everything before it is stored
	behind   atomic.Int64 // what the master has said last

	mu      sync.Mutex
	state   State // guards this and the fields below
	trouble string
	copying CopyStatus
}

func (s *status) set(state State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
	if state == Streaming || state == None || state == Copying {
		s.trouble = ""
	}
}

// explain gives the state a reason.
func (s *status) explain(state State, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.trouble = state, why
}

func (s *status) copied(change func(*CopyStatus)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.copying)
}

// begin notes that updates are going to come. What the master has is not known.
func (s *status) begin() {
	s.complete.Store(false)
	s.behind.Store(Unknown)
	s.set(Streaming)
}

// beat notes that everything is stored that the master had when it sent a heartbeat, message another sign of life.
func (s *status) beat(now time.Time) {
	s.heard.Store(now.UnixNano())
	s.had.Store(now.UnixNano())
	s.behind.Store(0)
	s.complete.Store(true)
}

func (s *status) message(now time.Time) {
	s.heard.Store(now.UnixNano())
	if s.complete.Swap(false) {
		s.behind.Store(Unknown) // until the master says more
	}
}

// retune forgets what was known of a former master.
func (s *status) retune(state State) {
	s.set(state)
	s.heard.Store(0)
	s.had.Store(0)
	s.complete.Store(false)
	s.behind.Store(Unknown)
}

// Status returns what is known now.
func (f *Follower) Status() Status {
	s, now := &f.status, time.Now()
	s.mu.Lock()
	st := Status{State: s.state, Trouble: s.trouble, Copy: s.copying}
	s.mu.Unlock()
	st.Position = ulog.Stamp(s.position.Load())
	st.Updates, st.Bytes, st.Dropped = s.updates.Load(), s.bytes.Load(), s.dropped.Load()
	st.Seconds, st.Records = Unknown, Unknown
	heard, had := s.heard.Load(), s.had.Load()
	if heard == 0 {
		return st
	}
	st.Contact = time.Unix(0, heard)
	silent := now.Sub(st.Contact)
	if st.State == Streaming && silent > stallAfter {
		st.State = Stalled
	}
	complete := s.complete.Load() && st.State == Streaming
	switch {
	case complete && silent < stallAfter:
		st.Seconds, st.Records = 0, 0
	case had != 0:
		st.Seconds = now.Sub(time.Unix(0, had)).Seconds()
	case st.Position > 0:
		st.Seconds = max(0, now.Sub(st.Position.Time()).Seconds())
	}
	if !complete && st.State == Streaming {
		st.Records = s.behind.Load()
	}
	return st
}
