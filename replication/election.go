package replication

import "gotycoon/ulog"

// In a cluster the members agree on one history of updates (package cluster). A member that goes
// over to the next primary then knows more than a server that is turned to another master: the new
// primary has every update that this member has, and its log has those that are lacking here behind
// the stamp of the newest that is here. So nothing is fetched that is here already, no sign of a
// master with another log counts as a loss, and nothing is copied.

// Election says who a master is that the members of a cluster have elected.
type Election struct {
	// Term is that of which the master must be the primary. Its streams and copies do not count in
	// another term: it may have gone back meanwhile to what another primary has.
	Term uint64

	// From is the stamp in the master's log behind which all updates are that are lacking here; nil
	// goes on where the replication was.
	From *ulog.Stamp

	// Had tells which updates behind From are here, by the log and the stamp of their origin; nil:
	// none.
	Had func(log uint64, at ulog.Stamp) bool
}

// rest tells when the replication has ended.
type rest struct {
	ordered uint64        // calls of Tune, Halt and Succeed
	begun   uint64        // the round under way heeds them up to this one
	ended   uint64        // nothing is stored any more since this call
	changed chan struct{} // closed when ended changes; nil: nobody waits
	at      Standing      // where the databases were then
}

// Standing says what a follower has when it rests.
type Standing struct {
	Master   uint64                // key of the log that was followed last; 0: none
	Position ulog.Stamp            // in that log
	Marks    map[uint64]ulog.Stamp // newest update of each log that is here
	Partial  bool                  // a copy has not come to its end, or a database has lost its data
	Base     Base
}

// Lineage says what the log of a server says about its data.
type Lineage struct {
	Base    Base
	Partial bool // a copy has not come to its end
}
