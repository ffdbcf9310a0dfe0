// Package status has what both the metrics and the console show of a server at one moment: its
// ports, the two sides of the replication, its cluster and its engine. The server fills the values
// in at each scrape and for each page, so that neither of the two knows the parts that the values
// come from.
package status

import (
	"time"

	"gotycoon/internal/metrics"
)

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

// Engine is an engine that several servers share, as one of them knows it. The histograms are of
// nanoseconds, but for the sizes of groups and reads.
type Engine struct {
	Up          bool // it answers
	Queue       int64
	QueueBytes  int64
	QueueLimit  int64
	Connections int

	Lost, Undone, Unknown, SettledMade, SettledUndone, Held, Refused uint64

	GroupOperations, GroupBytes, ReadKeys, Wait, Read, Write *metrics.Histogram

	Swept int64 // expired records that the engine has removed for this server

	Lease   EngineLease
	Signals *EngineSignals // nil: it carries none
	Inside  *EngineInside  // nil: it has not said, or not in time
}

// EngineLease is the lease in which a server has messages of queues.
type EngineLease struct {
	Name string // empty: the server has had no message so far
	Term uint64 // the latest one
	Held bool
}

// EngineSignals are the signals of clients (WAIT, SIGNAL) between the servers of an engine.
type EngineSignals struct {
	Listening            bool // those of others are heard
	Sent, Woken, Dropped uint64
}

// EngineInside is what an engine says of itself.
type EngineInside struct {
	Version           string
	Durability        string         // what an acknowledgement is worth
	Weak              bool           // ... less than a crash of one machine asks for
	LogBytes          int64          // of its log of updates
	LogAge            *time.Duration // of the oldest update in it; nil: there is none
	LogKeep           time.Duration  // for how long it is to be kept
	HorizonAge        time.Duration  // for how long the first of those has been at work who keep the log's readers from going on
	DeadTuples        int64
	OldestTransaction time.Duration
	ReplicaLag        *time.Duration // nil: not known, or there is no standby
}
