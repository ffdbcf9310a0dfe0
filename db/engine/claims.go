package engine

import (
	"context"

	"gotycoon/ulog"
)

// Claims take records away from everybody but one client, for message queues. A claimed record has
// left its database: its key is free. The log does not tell of a claim, so followers have the
// record all the time, and a message that was taken and not finished is never lost. A clear leaves
// what is claimed.
//
// A claim belongs to a term of its server's lease. When the term has ended, whichever way the
// server has ended, anybody may give the record back (Abandoned).
//
// Finish and GiveBack may be repeated. No call waits for who has the database alone: the error is
// Undone.
type Claims interface {
	// Take claims the first live record that c describes. It passes over records that somebody is
	// changing. found is false where there is none. The error is ErrFenced when the term has ended.
	// After Unknown, Settle tells.
	Take(ctx context.Context, id ClaimID, c Claim) (rec Record, found bool, err error)

	// Settle is for a Take that has ended in Unknown. It returns the record that the Take has
	// claimed. Where found is false it has claimed none and never will, or the claim has ended. It
	// waits for a Take under way, and may be repeated.
	Settle(ctx context.Context, id ClaimID) (rec Record, found bool, err error)

	// Finish forgets a claimed record. update is its removal; it is logged unless a record has been
	// stored under the key meanwhile, which stays. Who repeats a Finish, at the same server, gives
	// it the same c, in which Finish notes the group that ends the claim. Where that group was made
	// before, Finish returns nil, for as long as the engine remembers groups: a minute at least.
	// Where it was not, and there is no claim, the error is ErrUnclaimed, whether the term lasts or
	// not.
	Finish(ctx context.Context, c *Claimed, update ulog.Update) error

	// GiveBack stores a claimed record of a database under the key of update, without an expiration
	// time. update is the set that is logged. Where a record has that key, nothing happens and
	// taken is true: the caller chooses another key. A claim that has ended already is no error.
	GiveBack(ctx context.Context, id ClaimID, update ulog.Update) (taken bool, err error)

	// Abandoned returns some claims whose terms have ended: at most limit, and no further ones when
	// their values have so many bytes. It forgets what Settle has noted for such terms.
	Abandoned(ctx context.Context, limit, bytes int) ([]Claimed, error)

	// Waiting reports for each prefix whether there is a live record whose key begins with it.
	Waiting(ctx context.Context, db uint16, prefixes [][]byte) ([]bool, error)
}

// ClaimID names a claim. Its number is one that the holder of the term has not used before.
type ClaimID struct {
	By     Term
	Number uint64
}

// Claim says which record is to be claimed.
type Claim struct {
	DB     uint16
	Prefix []byte // its key begins with it
	From   []byte // and is not before this one
}

// Claimed is a record that is claimed.
type Claimed struct {
	ID ClaimID
	Record
	End GroupID // of the group with which Finish ends the claim; zero: Finish was not called yet
}
