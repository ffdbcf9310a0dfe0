package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Update is a change that Watch or Follow brings.
type Update struct {
	Kind    UpdateKind
	Key     string    // of Stored and Removed
	Value   []byte    // of Stored: the whole new value
	Expires time.Time // of Stored; zero: never

	// Stamp is the place of the change in the server's update log. Who has handled everything up to
	// a Stamp, of whatever Kind, goes on with it in WatchOptions.After or FollowOptions.After.
	Stamp uint64

	DB     int    // index of the database; Follow only
	Server uint16 // ID of the server where the change was made; Follow only
}

// Time returns when the change was made, to the millisecond.
func (u Update) Time() time.Time { return time.UnixMilli(int64(u.Stamp / 1_000_000)) }

// UpdateKind is what an Update tells.
type UpdateKind int

// The kinds. A record that expires, or goes for want of room, is no update.
const (
	Stored   UpdateKind = iota + 1 // a record was stored, by whatever call
	Removed                        // a record was removed, or would have been if it had existed
	Cleared                        // all records of the database were removed
	Progress                       // nothing: there is no other update up to Stamp; comes if it is asked for
)

// String returns the kind as a word.
func (k UpdateKind) String() string {
	switch k {
	case Stored:
		return "stored"
	case Removed:
		return "removed"
	case Cleared:
		return "cleared"
	case Progress:
		return "progress"
	}
	return "unknown"
}

// The pause before a lost stream is begun again. It doubles with each failure, up to againMost.
const (
	againFirst = 100 * time.Millisecond
	againMost  = 5 * time.Second
)

// ending says what another try at a stream is good for.
type ending int

const (
	final   ending = iota // nothing
	refused               // the server may take it in a moment, for example when it has a primary again
	broken                // the stream, once begun, goes on
)

// resume runs a stream until it ends for good: with the loop over it (nil), with ctx, or with an
// error that another try cannot mend. What has never begun is not tried again. begun tells resume
// that something has come.
func (c *Client) resume(ctx context.Context, stream func(begun func()) (ending, error)) error {
	var alive time.Time // when something came last
	pause := againFirst
	patience := c.opts.FindTime
	if patience == 0 {
		patience = findTime
	}
	for {
		end, err := stream(func() { alive, pause = time.Now(), againFirst })
		switch {
		case err == nil, end == final, alive.IsZero(), ctx.Err() != nil, errors.Is(err, errClosed):
			return err
		case end == refused && time.Since(alive) > patience:
			return err
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2)) // not all clients of a server at once
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return networkError(context.Cause(ctx))
		}
		pause = min(2*pause, againMost)
	}
}
