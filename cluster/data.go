package cluster

import (
	"context"

	"gotycoon/cluster/election"
)

// Data is what a member has besides its vote: databases, an update log, and the replication.
//
// The methods of the first group may wait for the disk, for as long as it hangs. They are called
// one at a time (Node.work), except Inventory, Confirmed, Fulfilled and Caught. Those of the second
// group touch only memory, and are called under Node.mu, whatever is under way in the first.
type Data interface {
	// Inventory says what is here, and is on the disk. While an update of a primary is being
	// stored, it may be a little old.
	Inventory() (Inventory, error)

	// Halt ends the replication from a primary, and what the services have under way. When it has
	// returned nil, nothing that a primary has sent is stored or acknowledged here any more, and
	// Inventory is exact.
	Halt(ctx context.Context) error

	// Follow begins to follow the primary of a term, from another place in the cluster's history
	// than the replication was at; nil: where it was.
	Follow(primary election.Member, term uint64, join *Join)

	// Replace begins to follow a primary, and replaces everything here by copies first.
	Replace(primary election.Member, term uint64)

	// SetAside copies those updates of this member's log that are lost into a log of their own, for
	// people. It looks behind the stamp after. It returns how many there are, and the directory.
	SetAside(term, after uint64, lost func(log, stamp uint64) bool) (n int, dir string, err error)

	// Lead prepares this member to be the primary of a term: it writes the first update of the
	// term, whose stamp it returns. Followers are counted from now on; clients are still refused.
	Lead(term uint64, rule Rule) (begun uint64, err error)

	// Ready prepares Open: the services take over, all of them or none. After an error it is called
	// again, unless another member is to be the primary.
	Ready() error

	// Confirmed returns when as many followers as Lead or Require said have everything up to a
	// stamp.
	Confirmed(ctx context.Context, stamp uint64) error

	// Fulfilled returns when everything up to a stamp fulfils a rule, which need not be that in
	// force.
	Fulfilled(ctx context.Context, rule Rule, stamp uint64) error

	// Caught returns when the follower with a server ID has everything up to a stamp.
	Caught(ctx context.Context, sid uint16, stamp uint64) error

	// Shut refuses updates of clients; when it has returned, no update of a client gets into the
	// log any more, and last is the log's end, which is on the disk.
	Shut() (last uint64, err error)

	// Glance is Inventory without what only the disk can tell: whether there are records, and
	// whether all of it is safe.
	Glance() Inventory

	// Disk says how far the disk has come.
	Disk() Disk

	// Require changes how many followers must have an update, and which count.
	Require(rule Rule)

	// Open lets clients update.
	Open()

	// StepDown is called when this member may no longer act as the primary: updates that wait for
	// followers fail with the reason, the services refuse calls, and clients are disconnected, so
	// that they look for the primary. Updates of clients are refused until the next Open. Those
	// that wait for the disk get into the log when the disk goes on, and nobody is told of them.
	StepDown(reason error)
}

// Disk says how far the disk of the update log has come. If it is the same at two times, with
// Waiting, the disk has done nothing in between that somebody waits for.
type Disk struct {
	Waiting bool
	Done    [4]uint64 // what has been done; it is only compared
}

// Join is where a member begins in the log of a primary that it has not followed before.
type Join struct {
	From uint64                       // what is needed is behind this stamp
	Had  func(log, stamp uint64) bool // which updates behind it are here already, by their origin
}

// Rule says when an update is acknowledged.
type Rule struct {
	Required int      // followers that must have it
	Counts   []uint16 // server IDs of the followers that count
}

// Inventory is what a member has.
type Inventory struct {
	SID   uint16 `json:"sid"`
	Marks `json:"marks"`
	// Follows is the key of the log that this member has followed last; 0: none.
	Follows uint64 `json:"follows,omitempty"`
	// The latest copy: see election.Appointment.
	Base     uint64 `json:"base,omitempty"`
	BaseFrom uint64 `json:"base_from,omitempty"`
	BaseOwn  uint64 `json:"base_own,omitempty"`
	// Empty: there is no record.
	Empty bool `json:"empty,omitempty"`
	// Incomplete says why the data are no state that a primary could begin with, such as a copy
	// that is under way; empty: they are.
	Incomplete string `json:"incomplete,omitempty"`
	// Lag is for how many seconds the member has lacked updates of the primary; below 0: unknown.
	Lag float64 `json:"lag,omitempty"`
	// Leaving: the server is about to stop. It becomes the primary no more.
	Leaving bool `json:"leaving,omitempty"`
}
