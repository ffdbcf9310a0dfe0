package election

import (
	"context"
	"errors"
	"time"
)

// An Elector is one member's view of the cluster's agreement. All its methods may be called by many
// goroutines; Leading, State, Lease, Leader, Changed and Err never wait.
type Elector interface {
	// Leading returns the term that this member leads. With ok it knows the newest committed State
	// too. Leading is no permission to act as the primary, only Lease is.
	Leading() (term uint64, ok bool)

	// Leader returns the member that leads as far as this member knows, and the newest term that
	// this member knows. A member that is cut off goes on to name the leader for a while.
	Leader() (name string, term uint64, known bool)

	// Lease returns the term that this member leads and the moment before which no other member
	// leads a term, or will. It returns zero values without a lease. The moment has a reading of
	// the monotonic clock: compare it with time.Now, and nothing else.
	//
	// The promise about a moment that was returned stands when this member loses the leadership
	// before that moment, with one exception: Transfer.
	Lease() (term uint64, until time.Time)

	// State returns the newest committed State that is known here.
	State() State

	// Propose commits the State that change makes of the newest one. It returns nil when the State
	// is committed and applied here. This member must lead the given term from the call of change
	// to the commit. The change may be called more than once, when another change was committed in
	// between; its error ends Propose. It must leave Version alone and may change of Members only
	// Addr and SID.
	//
	// ErrNotLeading means that nothing was changed. ErrUnknown means that the State may have been
	// committed, or may still be.
	Propose(ctx context.Context, term uint64, change func(State) (State, error)) error

	// AddMember makes a server a member. It returns, with the errors of Propose, when that is
	// committed. The member is Joining, which means without a vote, until it has caught up; the
	// leader then gives it the vote without being asked. So a server that never starts does not
	// enlarge the majority.
	AddMember(ctx context.Context, term uint64, m Member) error

	// RemoveMember takes the membership from a server, with the errors of Propose. The leader
	// cannot remove itself: transfer the leadership first.
	RemoveMember(ctx context.Context, term uint64, name string) error

	// Changed returns a channel that is closed at the next change of leadership, of the State, or
	// of Err. Get the channel before you look at what may change.
	Changed() <-chan struct{}

	// Transfer hands the leadership to another member, which must not be a witness. From the call
	// on this member has no lease, and the promise of each moment that Lease returned before is
	// void: the caller must have ended whatever it does under a lease. It returns nil when the
	// other member leads. After ErrRefused nothing has changed, the lease included. After another
	// error this member leads its term no more or will soon lose it, and has no lease in it.
	Transfer(ctx context.Context, to string) error

	// Hears reports whether Transfer to a member would not be refused because nothing was heard
	// from it lately. A member that has just started may follow and not have been heard yet.
	Hears(name string) bool

	// Err returns why this elector stopped for ever, such as a failed disk, or nil. A member that
	// has stopped neither leads nor votes.
	Err() error

	// Trouble says what is wrong between this member and others, for people; empty: nothing is
	// known to be.
	Trouble() string

	// Close leaves the cluster without a word, as a crash does.
	Close() error
}

// Errors that callers tell apart.
var (
	// ErrNotLeading: this member does not lead the term that was given. Nothing was changed.
	ErrNotLeading = errors.New("this member does not lead the term")

	// ErrRefused: the leadership cannot be transferred to that member now. Nothing was changed;
	// this member leads on and keeps its lease.
	ErrRefused = errors.New("the leadership cannot be transferred")

	// ErrUnknown: the leadership was lost or the time was over while a change was under way. The
	// change may have been committed, or may still be. Look at State after the next change of
	// leadership.
	ErrUnknown = errors.New("it is unknown whether the change was committed")

	// ErrLost: this member has forgotten what it agreed to, because its directory was removed or
	// replaced by an old copy. Its votes could break what the cluster agreed on. Remove the member
	// from the cluster and add it again with an empty directory.
	ErrLost = errors.New("the directory of the election lost what this member agreed to;" +
		" remove the member from the cluster and add it again with an empty directory")

	// ErrRemoved: this server is no member any more. To join anew it needs an empty directory.
	ErrRemoved = errors.New("this member was removed from the cluster;" +
		" to let it join again, empty its directory of the election and add it")

	// ErrClosed: the elector was closed.
	ErrClosed = errors.New("the elector is closed")
)

// A Transport carries messages to other members; messages from others are given to Receive of the
// elector. A Transport may lose, delay, repeat and reorder messages, but must not falsify them.
type Transport interface {
	// Send begins to send a message to the member with this Name and Addr. It must not wait for the
	// network and must not call Receive of any elector: the elector's lock is held. The message
	// belongs to the Transport from then on.
	Send(to Member, msg []byte)
}

// A Clock measures time. Real time is used where none is given; tests have their own.
type Clock interface {
	Now() time.Time // with a monotonic reading
	// AfterFunc calls f once in a goroutine of its own, after d. The returned function prevents the
	// call if it has not begun.
	AfterFunc(d time.Duration, f func()) (stop func())
}

// realClock is the system's clock.
type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) func() {
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}
