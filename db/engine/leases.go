package engine

import (
	"context"
	"fmt"

	"gotycoon/ulog"
)

// Term is a lease in one holder's hands. The number grows with every holder, so a Group with a
// Guard of a former holder is refused.
type Term struct {
	Name   string
	Number uint64
}

// Leases decide who does what only one server may do.
type Leases interface {
	// Hold waits until the lease is this server's, and keeps it until ctx ends, which gives it back
	// at once. lost is closed when the server must stop: at the end of ctx, or because it could not
	// renew the lease, well before another server can hold it.
	Hold(ctx context.Context, name string) (t Term, lost <-chan struct{}, err error)

	// Holder returns the address of the server that holds a lease, empty for none, and the number
	// of the last term.
	Holder(ctx context.Context, name string) (addr string, term uint64, err error)
}

// Claims take records away from everybody but one client, for message queues. A claimed record has
// left its database: its key is free. The log does not tell of a claim, so followers have the
// record all the time, and a message that was taken and not finished is never lost.
type Claims interface {
	// Take claims the first live record that c describes. found is false where there is none. Who
	// gets no answer may have claimed a record, which GiveBackAll gives back.
	Take(ctx context.Context, c Claim) (rec Record, found bool, err error)

	// Finish forgets a claimed record. update is its removal; it is logged unless a record has been
	// stored under the key meanwhile, which stays. A claim that has ended already is no error.
	Finish(ctx context.Context, lane uint64, rec *Record, update ulog.Update) error

	// GiveBack makes a claimed record visible again, also where a record has been stored under the
	// key meanwhile, which it replaces. update is the set that is logged; its expiration time, xt,
	// may be another one than before. A claim that has ended already is no error.
	GiveBack(ctx context.Context, lane uint64, rec *Record, xt int64, update ulog.Update) error

	// GiveBackAll makes all records that lane has claimed visible as they were, except where a
	// record has been stored under the key meanwhile, be it one that was claimed too and comes
	// back: of two, the newer one. It is for lanes of servers that have ended, and is not logged.
	// It returns how many came back.
	GiveBackAll(ctx context.Context, lane uint64) (records int, err error)
}

// Claim says which record is to be claimed.
type Claim struct {
	Lane   uint64 // whose it becomes
	DB     uint16
	Prefix []byte // its key begins with it
	From   []byte // and is not before this one
}

// LongestSignal is how many bytes a message of Signals has at most.
const LongestSignal = 4096

// Signals carry messages between servers. They are not kept: who does not listen misses them. All
// who listen hear messages in the same order.
type Signals interface {
	// Send sends a message to all servers that listen, this one included. A longer one is refused.
	// After an error it may have been heard or not.
	Send(ctx context.Context, message string) error

	// Listen calls heard for each message until ctx ends, whose error it then returns, or until the
	// engine cannot be reached. It calls begun once, when from then on all messages are heard. Both
	// are called by one goroutine at a time and are quick.
	Listen(ctx context.Context, begun func(), heard func(message string)) error
}

// CheckSignal refuses a message that is too long.
func CheckSignal(message string) error {
	if len(message) > LongestSignal {
		return Refuse(fmt.Sprintf("the engine carries signals of at most %d bytes", LongestSignal))
	}
	return nil
}
