package cluster

import (
	"errors"
	"time"
)

// ErrNotPrimary is the reason why a request that only the primary may serve is not answered.
var ErrNotPrimary = errors.New("this server is not the primary of its cluster")

var errLease = errors.New("this server does not reach a majority of its cluster, so another may be the primary by now")

// Serving returns nil while this member may answer clients as the primary: no other member can have
// become the primary before this call. What was read before the call is then the newest there was.
func (n *Node) Serving() error {
	led := n.led.Load()
	if led == 0 {
		return ErrNotPrimary
	}
	term, until := n.elector.Lease()
	if term != led || !time.Now().Before(until) {
		return errLease
	}
	return nil
}

// Term returns the term of which this member is the primary, also before it serves clients; 0: it
// is not.
func (n *Node) Term() uint64 { return n.acts.Load() }

// Follows returns the term whose primary this member follows, 0 while it follows none.
func (n *Node) Follows() uint64 {
	if v := n.View(); v.Role == Following {
		return v.Term
	}
	return 0
}

// Epoch returns a number that grows when this member ceases to be the primary. A connection keeps
// the number of its beginning.
func (n *Node) Epoch() uint64 { return n.epoch.Load() }

// Answers returns nil when a connection that began in an epoch may be answered: what was read is
// then the newest there was, if this member was the primary when the request was served. The lease
// is looked at first: whoever sees that this member leads no more sees the new epoch too.
func (n *Node) Answers(epoch uint64) error {
	if err := n.Serving(); err != nil && !errors.Is(err, ErrNotPrimary) {
		return err
	}
	if n.epoch.Load() != epoch {
		return ErrNotPrimary
	}
	return nil
}
