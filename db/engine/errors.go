package engine

import (
	"errors"
	"fmt"
)

// Kind is what an error says about the call. For a call that only reads, Undone stands for every
// failure that may pass.
type Kind byte

// The kinds of errors. Two are not enough: who repeats what was Unknown makes an update twice, and
// who does not repeat what was Undone fails for nothing.
const (
	Undone  Kind = iota + 1 // nothing has happened and nothing will: it may be tried again
	Unknown                 // the call may have had its effect, or may have it later: Settle tells
	Refused                 // never possible
	Full                    // no room: removals may be possible
)

// String returns the kind in small letters.
func (k Kind) String() string {
	switch k {
	case Undone:
		return "undone"
	case Unknown:
		return "unknown"
	case Refused:
		return "refused"
	case Full:
		return "full"
	}
	return fmt.Sprintf("kind %d", byte(k))
}

// Error is a failed call of an engine.
type Error struct {
	Kind Kind
	// Away says that the engine could not be reached, or has not answered: the next call will
	// probably fail as well.
	Away bool
	Err  error // what went wrong

	locked bool // see Locked
	db     uint16
}

// Error returns the cause; whoever shows it to a client says what its kind means.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

var (
	// ErrUndone is the answer of Settle for a group that was not made and never will be.
	ErrUndone error = &Error{Kind: Undone, Err: errors.New("the group has not been made")}
	// ErrForgotten is the answer of Settle for a group of which there is no note, so long after its
	// Write that a note may have been removed. It will not be made from now on; whether it was made
	// nobody knows.
	ErrForgotten error = &Error{Kind: Unknown, Err: errors.New("the engine does not remember the group any more")}
	// ErrPassed is the error of a group whose ID is that of another one, or was settled.
	ErrPassed error = &Error{Kind: Refused, Err: errors.New("a group with this ID was made or settled before")}
	// ErrDisowned is the error of a group whose lane is not this server's by what the engine knows.
	// The server goes on with another lane.
	ErrDisowned error = &Error{Kind: Undone, Err: errors.New("the engine was taken back to the past and has forgotten this server: nothing was changed, try again")}
	// ErrUndoneDisowned is the answer of Settle for a group whose lane is not this server's: it is
	// ErrUndone and ErrDisowned.
	ErrUndoneDisowned error = &Error{Kind: Undone, Err: fmt.Errorf("%w: %w", ErrUndone, ErrDisowned)}
	// ErrCrowded is the error of a transaction or snapshot for which no connection became free.
	ErrCrowded error = &Error{Kind: Undone, Err: errors.New("too many transactions and backups of this server are under way")}
	// ErrFenced is the error of a group whose guard is a lease that has ended.
	ErrFenced error = &Error{Kind: Refused, Err: errors.New("another server holds the lease by now, or may hold it")}
	// ErrUnclaimed is the error of a Finish without a claim: somebody else has given the record
	// back, or the engine was taken back to before the record was claimed. The record may be there.
	ErrUnclaimed error = &Error{Kind: Refused, Err: errors.New("the record is not claimed any more")}
	// ErrTrimmed is the error of a read of the log whose beginning has been removed.
	ErrTrimmed error = &Error{Kind: Refused, Err: errors.New("the engine's log begins behind this stamp; make a new copy of the databases")}
)

// Locked returns the error of what does not wait for who has a database alone.
func Locked(db uint16) error {
	return &Error{Kind: Undone, locked: true, db: db, Err: errors.New("a transaction has the database alone")}
}

// IsLocked reports whether an error says that somebody has a database alone, and which.
func IsLocked(err error) (db uint16, is bool) {
	var e *Error
	if errors.As(err, &e) {
		return e.db, e.locked
	}
	return 0, false
}

// Refuse returns an error of the kind Refused.
func Refuse(why string) error { return &Error{Kind: Refused, Err: errors.New(why)} }

// KindOf returns the kind of an error. An error that is no *Error says nothing about what has
// happened, so it is Unknown.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Unknown
}

// IsAway reports whether an error says that the engine could not be reached.
func IsAway(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Away
}
