// Package status has what both the metrics and the console show of a server at one moment: its
// ports, and the two sides of the replication. The server fills the values in at each scrape and
// for each page, so that neither of the two knows the parts that the values come from.
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
