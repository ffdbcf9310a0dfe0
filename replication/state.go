package replication

// State is what one side of a replication is doing.
type State string

// The states.
const (
	None       State = "none"       // there is no master
	Connecting State = "connecting" // to the master, or waiting to do so again
	Copying    State = "copying"    // a database is fetched as a whole
	Streaming  State = "streaming"
	Stalled    State = "stalled" // connected, but the other side is silent, or updates cannot be stored
	Gap        State = "gap"     // the master has not kept updates that the follower needs
	Parted     State = "parted"  // the master has lost updates that the follower has from it
)
