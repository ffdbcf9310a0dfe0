package replication

import (
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/ulog"
)

// State is what one side of a replication is doing.
type State string

// The states.
const (
	None       State = "none"       // there is no master
	Connecting State = "connecting" // to the master, or waiting to connect again
	Copying    State = "copying"    // a database is fetched as a whole
	Streaming  State = "streaming"
	Stalled    State = "stalled" // the other side is silent, or updates cannot be stored
	Gap        State = "gap"     // the master has not kept updates that the follower needs
	Parted     State = "parted"  // the master lacks updates that the follower has from it or the former one
)

// Unknown is the value of a lag that is not known.
const Unknown = -1

// stallAfter: a side of a connection that is silent for this long counts as stalled. It should be
// heard of once a second.
const stallAfter = 5 * time.Second

// quietAfter: a follower that has everything hears of its master once a second. When it has heard
// nothing for this long, there may be updates that it does not know of, and its lag grows from the
// last sign of life.
const quietAfter = 2 * time.Second

// Status describes the replication from a master.
type Status struct {
	State    State
	Position ulog.Stamp // in the master's log
	Seconds  float64    // since when updates have been lacking; 0: none are; may be Unknown
	Records  int64      // updates that are lacking; Unknown if the master does not tell
	Contact  time.Time  // when the master was last heard of; zero: not yet
	Updates  int64      // applied since the start
	Bytes    int64      // of these updates, as they came
	Dropped  int64      // updates that had come on another way before
	Copy     CopyStatus // with the state Copying
	Trouble  string     // why the state is Gap, Parted or Stalled, or why there is no connection
}

// CopyStatus is the progress of a copy.
type CopyStatus struct {
	DB      int   // number of the database
	Records int64 // that have come
	Total   int64 // that the master has
	Bytes   int64
}

// status is written by the goroutine of a follower and read by any.
type status struct {
	position atomic.Uint64 // a ulog.Stamp: everything up to it is applied and durable
	updates  atomic.Int64
	bytes    atomic.Int64
	dropped  atomic.Int64
	heard    atomic.Int64 // UnixNano of the last message; 0: none
	had      atomic.Int64 // UnixNano of the last moment when nothing was lacking here; 0: none
	complete atomic.Bool  // the last message was a heartbeat, and everything before it is stored
	behind   atomic.Int64 // updates that were lacking when the master last told their number

	mu      sync.Mutex // protects the fields below
	state   State
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

// explain sets the state together with its reason.
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

// begin notes that a stream begins. How many updates the master has is not known yet.
func (s *status) begin() {
	s.complete.Store(false)
	s.behind.Store(Unknown)
	s.set(Streaming)
}

// beat notes that everything is stored that the master had when it sent a heartbeat.
func (s *status) beat(now time.Time) {
	s.heard.Store(now.UnixNano())
	s.had.Store(now.UnixNano())
	s.behind.Store(0)
	s.complete.Store(true)
}

// message notes a message that is no heartbeat.
func (s *status) message(now time.Time) {
	s.heard.Store(now.UnixNano())
	if s.complete.Swap(false) {
		s.behind.Store(Unknown) // until the master tells a number
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

// look returns the present description.
func (s *status) look(now time.Time) Status {
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
	case complete && silent < quietAfter:
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
