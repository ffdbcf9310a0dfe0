package httpapi

import (
	"errors"

	"gotycoon/ulog"
)

// Where the databases are in an engine that several servers share, there is no update log of the
// server's own, and nobody who follows it. What needs them is refused with what to do instead.

// sharedError refuses what an engine has no place for.
type sharedError struct {
	is      error // that of a server without a log or a cluster, whose status it has
	instead string
}

// Error says what to do.
func (e *sharedError) Error() string { return e.is.Error() + ": " + e.instead }

// Unwrap returns the error of a server without an engine.
func (e *sharedError) Unwrap() error { return e.is }

const (
	inEngine = "the databases are in an engine that servers share"
	standbys = inEngine + ", and have no followers: 'ktutilmgr engine status URL' says how many machines of the engine have an update before it is answered"
)

// errNoFollowers refuses a request that asks for followers.
var errNoFollowers error = &sharedError{errNotImplemented, "REPLICAS and X-Kt-Replicas: " + standbys + "; leave the number of followers out"}

// instead adds to an error of a procedure what to do on a server of an engine.
func (c *call) instead(name string, err error) error {
	switch {
	case !c.opts.Shared:
		return err
	case errors.Is(err, errNoLog) && (name == "replicas" || name == "wait_replicas"):
		return &sharedError{err, standbys}
	case errors.Is(err, errNoLog):
		return &sharedError{err, inEngine + ", whose log no server hands out so far; 'ktutilmgr engine status URL' shows how much of it is kept, and 'ktremotemgr backup' copies a database"}
	case errors.Is(err, errNoWatch):
		return &sharedError{err, inEngine + ", whose log no server hands out so far; a writer can wake others at all servers with SIGNAL, who then read"}
	case errors.Is(err, errNoRTS):
		return &sharedError{err, inEngine + ", and follow no master so far: 'ktremotemgr backup' there and 'ktutilmgr engine load' here bring its records"}
	case errors.Is(err, errNoCluster):
		return &sharedError{err, inEngine + ": each of them answers for all records, and none leads; ask /readyz of each, or 'ktutilmgr engine status URL'"}
	}
	return err
}

// position0 is the position of every reply where the databases are in an engine: whatever server a
// client asks next, it sees what it has been told.
func position0() ulog.Stamp { return 0 }
