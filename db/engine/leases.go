package engine

import (
	"context"
	"fmt"
)

// Term is a lease in one holder's hands. The number grows with every holder, so a Group with a
// Guard of a former holder is refused. An engine that was taken back to the past gives out numbers
// again, so each of its terms has a mark that no other term has.
type Term struct {
	Name   string
	Number uint64
	Mark   [16]byte
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
