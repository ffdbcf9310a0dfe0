package lock

import (
	"math"
	"sync"
	"sync/atomic"
)

// The parts of the table, and how they refer to each other. The methods of a part are in key.go,
// timers.go and session.go; table.go changes several parts together.
//
//	shard ─┬─► keys by name ─► key ─► holders, and lines of waiting requests ─┐
//	       └─► timers: a heap of those that end by themselves ───────────────┴─► request
//	request ─► its key, its session         key ─► its shard         session ─► its requests

// shard is the part of a table that one mutex protects.
type shard struct {
	mu      sync.Mutex
	keys    map[string]*key
	peak    int    // most keys that the map has held since it was made
	spare   []*key // unused keys for newKey
	timers  timers
	arrival uint64 // number of the latest request
	counts  Counts
	_       [64]byte // a cache line between the locks
}

// Counts are numbers of events since the start.
type Counts struct {
	Grants   uint64 // without renewals
	Renewals uint64
	Releases uint64 // also at the end of connections
	Expiries uint64
	Timeouts uint64
	Cancels  uint64 // waiting requests that were cancelled, also at the end of connections
	Refusals uint64 // over a limit, or without a token
}

// key is a lock with its holders and its waiting requests. The mutex of its shard protects it. A
// key with neither is removed, and newKey uses it again for another name of the same shard.
type key struct {
	shard   *shard // does not change
	name    string
	holders queue                 // in the order of their grants
	limits  []limit               // MAX of the holders, ascending
	lines   []line                // waiting requests, one line for each MAX
	waiting int                   // in all lines
	index   map[*session]*request // of all requests when there are many; nil otherwise

	// Nearly all keys need one limit, one line and one request: these arrays save the allocations.
	oneLimit   [1]limit
	oneLine    [1]line
	oneRequest request
}

// limit is how many holders have the same MAX.
type limit struct {
	max int32
	n   int
}

// line holds the waiting requests with the same MAX, in the order of their arrival. Either
// all requests of a line may enter next, or none. So next looks at the first request of each line
// only, instead of every waiting request.
type line struct {
	max int32
	queue
}

// state of a request.
type state byte

const (
	gone state = iota // it neither waits nor holds the lock, and is not used any more
	waiting
	holding
)

// request is what one session wants of a key or has of it. There is at most one request for a
// session and a key.
type request struct {
	key     *key
	session *session
	state   state

	max     int32
	expires int32  // seconds
	fenced  bool   // a token is wanted
	token   uint64 // 0 is none

	arrival uint64 // grows with each request of the shard
	since   int64  // when it began to wait or to hold
	when    int64  // when it times out or expires; never: not in the timers
	slot    int    // index in the timers
	place   int    // index among the session's requests; session.mu protects it

	prev, next *request // neighbours in holders or in a line
}

// queue is a list of requests.
type queue struct {
	first, last *request
	n           int
}

// never is a moment that does not come.
const never = math.MaxInt64

// timers is a heap of the requests of a shard that time out or expire, the earliest first. The
// mutex of the shard protects it; next may be read without.
type timers struct {
	heap []*request
	next atomic.Int64 // no request is due before it; it may be too early, never too late
}

// session is what the table knows of a connection: its requests, and the lines to send to it. Its
// mutex is taken after that of a shard.
//
// There are two buffers of lines, so that the usual command needs no lock: the session's own steps
// append to own, which belongs to the goroutine of the connection; all others append to lines,
// under mu. The client must see its lines in the order in which they were caused, so own is always
// sent before lines, and while there is something in lines, own steps append to lines too:
//
//	own: A B      lines:          a command causes A and B
//	own: A B      lines: X        another session's release causes X
//	own: A B      lines: X C      a command causes C: not into own, or C would be sent before X
type session struct {
	address string      // of the client
	push    func()      // sends lines soon, without waiting; called with no lock held
	own     []byte      // not yet sent; belongs to the goroutine of the session's steps
	left    atomic.Bool // lines is not empty; changes under mu

	mu       sync.Mutex // protects the fields below
	requests []*request // in no order
	lines    []byte     // not yet sent
	overflow bool       // lines has exceeded maxLines
}

// about makes a reply with the present counts.
func (k *key) about(word string) reply {
	return reply{word: word, holders: k.holders.n, waiters: k.waiting}
}

// left makes a reply with the present counts, the seconds that r may hold the lock, and its token
// if it wants one.
func (r *request) left(word string) reply {
	a := r.key.about(word)
	a.timed, a.seconds = true, r.expires
	if r.fenced {
		a.token = r.token
	}
	return a
}
