package engine

import (
	"context"

	"gotycoon/ulog"
)

// Log is the updates of all servers in one order. Every server reads the same stamps.
type Log interface {
	// ID returns the identity of the log: the same for all servers, another one after the engine
	// was restored from a backup.
	ID(ctx context.Context) ([16]byte, error)

	// Read returns groups behind a stamp in the order of their stamps, at least one if there is
	// any, and then no more than maxBytes. No group with a stamp up to upTo, beyond those returned
	// and those up to after, has been or will be added: the caller goes on behind upTo. upTo also
	// moves on with the clock while nothing is written. When the log begins behind after, the error
	// is ErrTrimmed.
	Read(ctx context.Context, after Stamp, maxBytes int) (groups []Logged, upTo Stamp, err error)

	// Oldest returns the stamp up to which the log has been removed, 0 for nothing.
	Oldest(ctx context.Context) (Stamp, error)

	// Trim removes the groups whose stamps are up to upTo.
	Trim(ctx context.Context, upTo Stamp) error
}

// Logged is a group as the log has it.
type Logged struct {
	ID       GroupID
	Stamp    Stamp // of the first update; the following ones have the next stamps
	Updates  []ulog.Update
	Position *ulog.Position // as the group had it; State alone is kept
}

// Last returns the stamp of the group's last update. A group with a position alone has one stamp.
func (g *Logged) Last() Stamp { return g.Stamp + Stamp(max(1, len(g.Updates))-1) }
