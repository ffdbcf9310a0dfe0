// Package status has what both the metrics and the console show of a server at one moment: its
// ports, the two sides of the replication, and its cluster. The server fills the values in at each
// scrape and for each page, so that neither of the two knows the parts that the values come from.
package status

import "time"

// Port is a port whose connections are counted.
type Port struct {
	Name        string // the service on the port
	Connections func() (open int, total uint64)
}

// Unknown is the value of a lag that is not known.
const Unknown = -1

// Follower is the replication from a master at one moment.
type Follower struct {
	Following bool
	State     string  // empty: not known
	Seconds   float64 // behind the master, or Unknown
	Records   int64   // updates behind the master, or Unknown
	Position  time.Time
	Contact   time.Time // when something last came from the master; zero: not known
	Applied   *Applied  // nil: not known
}

// Applied counts what has come from masters since the start.
type Applied struct{ Updates, Bytes, Dropped int64 }

// Replica is a follower of this server at one moment.
type Replica struct {
	SID     string  // its server ID
	Peer    string  // IP address; a port would make a new series for each connection
	State   string  // empty: not known
	Seconds float64 // behind this server, or Unknown
	Records int64   // updates behind this server, or Unknown
	Contact time.Time
}

// Confirmation is how followers confirm updates at one moment (-sync-replicas).
type Confirmation struct {
	Required, Present int
	Refusing          bool  // updates are refused, because followers are missing
	Degraded          bool  // updates are answered without followers
	Waiting           int64 // for followers now

	Refused, Unconfirmed, Unwaited int64 // since the start
}

// Cluster is what a member knows of its cluster at one moment.
type Cluster struct {
	Name      string
	Term      uint64
	Leading   bool // this server answers clients as the primary
	Required  int  // followers that must have an update
	Members   int
	Followers int // members whose confirmations can count: with data and a vote, without the primary

	// Answering says of each member, on the primary, whether it answers; nil: not known here.
	Answering map[string]bool

	Changes uint64    // appointments of a primary since the start
	Changed time.Time // the latest of them, or the start
	Asides  int       // logs of updates that were put aside here

	Stalled time.Duration // for how long the disk of the update log has done nothing
}
