package ulog

// company tells a leader whether to let others run before it takes the pending records, so that
// goroutines which are about to append join the group. Measured on 2 cores, 130-byte records
// without fsync, in thousands per second: 8 writers 1,900 instead of 1,300, 64 writers 2,100
// instead of 1,300, 512 writers 2,400 instead of 1,360. With fsync the difference is in the noise.
//
// A writer alone has nobody to wait for, and would pay for it: runtime.Gosched wakes a thread up
// that looks for work, finds none, and gets into the way of the threads that have some. While
// others use the cores as well, one set in a hundred then took half a millisecond longer. So a
// leader yields only while that brings updates, and now and then to see whether it would: on one
// processor nobody can append while the leader writes, however many would.
//
// How many updates a group has does not tell. A loop of connections (internal/netio) appends those
// of all its clients and then leads: its groups are full, and nobody else is about to append.
type company struct {
	hope  int // so many groups more the leader yields for, though nobody has come meanwhile
	since int // groups since it last yielded without hope
}

const (
	// hopeFor: who comes while a leader yields, comes by chance. After one that has come the leader
	// yields for so many groups more.
	hopeFor = 16
	// lookEvery is how many groups come between two looks for others while there is no hope.
	lookEvery = 16
)

// expected reports whether the leader is to yield.
func (c *company) expected() bool {
	if c.hope > 0 {
		return true
	}
	c.since++
	if c.since < lookEvery {
		return false
	}
	c.since = 0
	return true
}

// came notes whether others have appended while the leader yielded.
func (c *company) came(others bool) {
	switch {
	case others:
		c.hope = hopeFor
	case c.hope > 0:
		c.hope--
	}
}
