package engine

import (
	"bytes"
	"cmp"
	"context"
	"time"
)

// Engine keeps the records of databases that several servers share. Any number of goroutines may
// call its methods. Each call ends soon after its context. Unless said otherwise an error is an
// *Error. The slices that an engine returns belong to the caller; slices that it is given are not
// changed, and not kept after the call.
type Engine interface {
	// Read returns the records of keys, which are ascending, each once. The records are those of
	// one moment, which is not before the call, and come in the order of the keys. Absent ones are
	// left out; expired ones are not, because who replaces one needs its revision. A Read of no
	// keys asks whether the engine answers.
	//
	// With how.Hold set, it waits until nobody else changes the keys, whether they have records or
	// not, or has their databases alone, and from then on others wait: until Write or Settle of
	// this group, or Limits.Hold. A lane has one hold at most: its next hold ends the former one.
	// All keys are held in one step in ascending order, so holds never deadlock, as long as the
	// group changes no other key. An engine that cannot hold keys ignores it.
	Read(ctx context.Context, keys []Key, how Reading) ([]Record, error)

	// Scan returns records of one database in the order of their keys' bytes, of one moment.
	// Expired ones are among them.
	Scan(ctx context.Context, s Scan) (Page, error)

	// Lane gives this server a lane, under a number that the engine has given nobody before, and
	// this method never before. An engine that was taken back to the past may have forgotten whom
	// it has given a number later, and give it to another server: the first one is then answered
	// ErrDisowned, by Write and Commit. See "Lanes and the past" in doc.go.
	Lane(ctx context.Context) (uint64, error)

	// Write makes each change whose condition holds, with g.Whole all or none, in one step, and
	// notes the group under g.ID. What it acknowledges is as durable as the engine promises. Groups
	// of a lane come one after the other, with ascending Seq: after Unknown, the next one comes
	// after Settle has answered. A group without changes, clear and position ends a hold, and is
	// not noted.
	Write(ctx context.Context, g *Group) (Result, error)

	// Settle is for the newest group of a lane, if its Write has ended in Unknown. It returns the
	// group's result, or ErrUndone: the group has not been made and never will be. An engine that
	// does not know the lane as this server's has not made it either, and the answer is
	// ErrUndoneDisowned. Settle waits for a group
	// that is being made. After ErrForgotten the question stays open for ever. Any other error
	// leaves it open; Settle may be repeated.
	Settle(ctx context.Context, id GroupID) (Result, error)

	// Begin locks a database for one writer, and waits until nobody else has it. Other groups of
	// the database wait; readers do not. The lock ends with ctx at the latest.
	Begin(ctx context.Context, db uint16) (Tx, error)

	// Sweep removes at most limit records whose XT is before a time in seconds, and returns how
	// many. It passes over records that somebody is changing. Removals of a Sweep are not logged.
	Sweep(ctx context.Context, db uint16, before int64, limit int) (removed int, err error)

	// Count returns the number of records, expired ones included, and about how many bytes they
	// take in the engine.
	Count(ctx context.Context, db uint16) (records, bytes int64, err error)

	// Snapshot returns the records of one moment. The caller closes it.
	Snapshot(ctx context.Context, db uint16) (Snapshot, error)

	Log() Log         // nil: the engine keeps none
	Claims() Claims   // nil: records cannot be claimed
	Leases() Leases   // never nil
	Signals() Signals // nil: not possible
	Limits() Limits

	// Epoch returns a number above 0 that grows when this server makes a new connection for its
	// groups. An engine that is taken back to the past cuts all connections: what a writer has read
	// in this epoch is of the same engine as long as the epoch lasts. See Group.Epoch.
	Epoch() uint64

	// Now returns the engine's clock in UNIX seconds, by which records expire. It asks nobody.
	Now() int64

	// Clock returns the same clock as exactly as the server knows it. It may go back a little.
	Clock() time.Time

	// Close ends this server's use of the engine: its leases and holds, but not its claims. It
	// waits until calls under way have ended.
	Close() error
}

// Key names a record of a database.
type Key struct {
	DB  uint16 // index of the database
	Key []byte
}

// Compare orders keys by their databases, then by their bytes.
func Compare(a, b Key) int {
	if n := cmp.Compare(a.DB, b.DB); n != 0 {
		return n
	}
	return bytes.Compare(a.Key, b.Key)
}

// Record is a record as the engine has it.
type Record struct {
	Key
	Value    []byte // without an expiration time in front
	XT       int64  // absolute expiration time in UNIX seconds; Forever: it does not expire
	Revision uint64
	Left     int // bytes of a value that was left out because it has more than the caller wants
}

// Forever is the XT of a record that does not expire.
const Forever int64 = 1<<40 - 1

// Expired reports whether a record with the expiration time xt has expired. It still lives in the
// second that xt names.
func Expired(xt, now int64) bool { return now > xt }

// Scan says which records a page has.
type Scan struct {
	DB        uint16
	Prefix    []byte // only keys that begin with it
	Floor     []byte // and are not before this one
	Key       []byte // begin at this place of the order, whether there is a record or not
	Edge      bool   // begin at the first record (Backward: the last); Key is ignored
	Inclusive bool   // the record with Key itself is in the page too
	Backward  bool   // against the order
	Bare      bool   // keys, expiration times and revisions; no values
	Limit     int    // records of a page; at least 1
	Bytes     int    // a page ends when its values have so many bytes; 0: Limit alone counts
	Most      int    // as in Reading
}

// Page is what a Scan has found.
type Page struct {
	Records []Record
	More    bool // the page was ended by Limit or Bytes; there may be more records behind it
}

// Limits is what an engine can do.
type Limits struct {
	Key     int           // bytes of a key
	Value   int           // bytes of a value
	Changes int           // changes of a group
	Bytes   int           // bytes of the keys and values of a group
	Hold    time.Duration // for how long the engine holds keys at most; 0: it cannot
}

// Tx is the lock of a database for one writer.
type Tx interface {
	// Commit writes a group, all or none, and ends the lock. Undone: nothing has happened, because
	// the lock had ended before or for another reason. After Unknown, Settle tells.
	Commit(ctx context.Context, g *Group) (Result, error)

	// Abort ends the lock. It has no effect after Commit.
	Abort()
}

// Snapshot is the records of a database at one moment, claimed ones included.
type Snapshot interface {
	// Stamp returns a stamp up to which all of the log is in the snapshot. Some groups behind it
	// may be in it too. It is 0 without a log.
	Stamp() Stamp

	// Count returns the number of records of the moment, which is exact.
	Count(ctx context.Context) (int64, error)

	// Scan returns records of the moment as Engine.Scan does. When the engine cannot show the
	// moment any more, the error is Undone and the caller begins anew with another snapshot.
	Scan(ctx context.Context, s Scan) (Page, error)

	// Close gives back what the snapshot takes in the engine. Closing twice is fine.
	Close() error
}
