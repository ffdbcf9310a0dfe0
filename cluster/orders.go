package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gotycoon/cluster/election"
)

// The calls between members.
const (
	callSeal   = "seal"   // term → Inventory
	callStatus = "status" // → Status
	callOrder  = "order"  // Order → {}, to the primary
)

// orderTimeout limits what an operator asks for.
const orderTimeout = 60 * time.Second

// Order is what an operator wants of the cluster. The primary carries it out.
type Order struct {
	Do     string          `json:"do"` // one of the constants
	Name   string          `json:"name,omitempty"`
	Member election.Member `json:"member,omitzero"` // of Add
	Number int             `json:"number,omitempty"`
}

// What an Order can ask for.
const (
	Switch  = "switchover" // Name becomes the primary
	Add     = "add"        // Member becomes a member
	Remove  = "remove"     // Name is no member any more
	Require = "require"    // updates need Number followers
)

// Mistake is the error of an order that cannot be carried out as it was given. Other errors of
// orders are about the present moment.
type Mistake struct{ text string }

// Error says what is wrong.
func (m *Mistake) Error() string { return m.text }

func mistake(format string, args ...any) error { return &Mistake{fmt.Sprintf(format, args...)} }

// Do carries out an order, or has the primary do so.
func (n *Node) Do(ctx context.Context, o Order) error {
	leader, _, known := n.elector.Leader()
	switch {
	case !known:
		return errors.New("no member leads the cluster now")
	case leader == n.opts.Name:
		return n.carryOut(ctx, o)
	}
	return n.mesh.call(ctx, leader, callOrder, o, new(struct{}))
}

func (n *Node) carryOut(ctx context.Context, o Order) error {
	if !n.beginOrder(ctx) {
		return errBusy
	}
	defer n.endOrder()
	n.mu.Lock()
	term, role := n.term, n.role
	n.mu.Unlock()
	// Where followers are gone for good, fewer of them is the way out.
	if role != Leading && (role != Opening || o.Do != Require) {
		return errors.New("there is no primary now; try again in a moment")
	}
	defer n.poke()
	switch o.Do {
	case Switch:
		return n.switchOver(ctx, o.Name)
	case Add:
		return n.add(ctx, term, o.Member)
	case Remove:
		return n.remove(ctx, term, o.Name)
	case Require:
		return n.require(ctx, term, o.Number)
	}
	return mistake("the order %q is unknown to this version", o.Do)
}

var errBusy = errors.New("the primary is carrying out another order")

// beginOrder waits until no other order is carried out, unless ctx ends before.
func (n *Node) beginOrder(ctx context.Context) bool {
	select {
	case n.ordering <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (n *Node) endOrder() { <-n.ordering }
