// Package dberr is the errors of database operations, with the codes and names that clients see.
package dberr

import (
	"errors"
	"fmt"
)

// Code classifies a database error. The numbers and names are part of the wire protocols and must
// not change.
type Code int

// The codes of the original server.
const (
	Success            Code = 0
	NotImplemented     Code = 1
	InvalidOperation   Code = 2
	NoRepository       Code = 3
	NoPermission       Code = 4
	BrokenFile         Code = 5
	RecordDuplication  Code = 6
	NoRecord           Code = 7
	LogicInconsistency Code = 8
	SystemError        Code = 9
	Miscellaneous      Code = 15
)

// String returns the name that clients see.
func (c Code) String() string {
	switch c {
	case Success:
		return "success"
	case NotImplemented:
		return "not implemented"
	case InvalidOperation:
		return "invalid operation"
	case NoRepository:
		return "no repository"
	case NoPermission:
		return "no permission"
	case BrokenFile:
		return "broken file"
	case RecordDuplication:
		return "record duplication"
	case NoRecord:
		return "no record"
	case LogicInconsistency:
		return "logical inconsistency"
	case SystemError:
		return "system error"
	}
	return "miscellaneous error"
}

// Error is a failed database operation as clients are told about it. Test for it with errors.As and
// Code, or with errors.Is and one of the errors below.
type Error struct {
	Code    Code
	Message string // what went wrong, one line
	Err     error  // the cause, or nil; not shown to clients
}

// Error returns "CODE: NAME: MESSAGE", the form that follows "DB: " on the wire.
func (e *Error) Error() string {
	return fmt.Sprintf("%d: %s: %s", int(e.Code), e.Code, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errors that an operation on records can return.
var (
	// ErrNoRecord: the record does not exist or has expired, or the cursor stands on none.
	ErrNoRecord error = &Error{Code: NoRecord, Message: "no record"}
	// ErrDuplicate: Add found a record.
	ErrDuplicate error = &Error{Code: RecordDuplication, Message: "record duplication"}
	// ErrConflict: CAS found another state than the one expected.
	ErrConflict error = &Error{Code: LogicInconsistency, Message: "status conflict"}
	// ErrLogic: Increment and IncrementDouble found no number, or no record where one is required.
	ErrLogic error = &Error{Code: LogicInconsistency, Message: "logical inconsistency"}
	// ErrNotImplemented: a hash database has no backward cursor.
	ErrNotImplemented error = &Error{Code: NotImplemented, Message: "not implemented"}
	// ErrReadOnly: the database refuses updates.
	ErrReadOnly error = &Error{Code: NoPermission, Message: "permission denied"}
	// errLongValue: a value is longer than MaxValueSize.
	ErrLongValue error = &Error{Code: InvalidOperation, Message: "the value is longer than 1 GiB"}
	// ErrPostproc: the function given to Synchronize failed.
	ErrPostproc error = &Error{Code: LogicInconsistency, Message: "postprocessing failed"}
	// ErrRegex: the expression given to MatchRegex is not valid.
	ErrRegex error = &Error{Code: LogicInconsistency, Message: "compilation failed"}
)

// Errors that opening a database can return.
var (
	// ErrUnknownType: the path expression names no database type.
	ErrUnknownType error = &Error{Code: InvalidOperation, Message: "unknown database type"}
)

// Errors of updates that there is no room for at the moment. Removals go on; nothing has changed.
var (
	// ErrNoSpace: the disk is nearly full.
	ErrNoSpace error = &Error{Code: SystemError, Message: "no space: the disk is nearly full, only removals are possible"}
	// ErrNoMemory: records in memory may not grow any more.
	ErrNoMemory error = &Error{Code: SystemError, Message: "no space: the memory is used up, only removals are possible"}
	// ErrOverSize: the databases may not grow any more.
	ErrOverSize error = &Error{Code: SystemError, Message: "no space: the databases have reached their size, only removals are possible"}
)

// Refused reports whether an error means that there was no room for an update. The server logs when
// such refusals begin and when they end, not each of them.
func Refused(err error) bool {
	return errors.Is(err, ErrNoSpace) || errors.Is(err, ErrNoMemory) || errors.Is(err, ErrOverSize)
}

// passing is a cause of errors that may pass: the same request may succeed later.
type passing struct{ text string }

// Error returns the text.
func (p *passing) Error() string { return p.text }

// Causes of errors that say that not enough followers have an update, or can have it.
var (
	// ErrFewReplicas: the update was refused, and nothing has changed.
	ErrFewReplicas error = &passing{"not enough followers are there"}
	// ErrUnconfirmed: the update is stored on this server. A failover may lose it, or keep it.
	ErrUnconfirmed error = &passing{"not enough followers have confirmed the update"}
)

// Causes of errors of updates at a member of a cluster that is not the primary. Nothing has
// changed.
var (
	// ErrNoPrimary: no server is known to be the primary now.
	ErrNoPrimary error = &passing{"no primary is known"}
	// ErrElsewhere: another server is the primary.
	ErrElsewhere = errors.New("another server is the primary")
)

// Causes of errors of databases whose records are in an engine that several servers share.
var (
	// ErrEngine: the engine has not carried the operation out, and will not. Nothing has changed.
	ErrEngine error = &passing{"the engine has not answered"}
	// ErrOutcome: nobody knows whether the engine has carried the operation out.
	ErrOutcome error = &passing{"what the engine has done is not known"}
)

// Unavailable reports whether an error means that followers were missing, or a primary, or the
// engine of the databases, so that the same request may succeed later. The server logs when that
// begins and when it ends, not each request.
func Unavailable(err error) bool {
	_, is := errors.AsType[*passing](err)
	return is
}

// Expected reports whether an error says something about the state of the server that the log has,
// so that it is no line of its own: there is no room, followers or a primary are missing, or the
// primary is another server.
func Expected(err error) bool {
	return Refused(err) || Unavailable(err) || errors.Is(err, ErrElsewhere)
}

// ErrNoTransaction: the database kind has no transactions (a text database keeps only what is
// appended).
var ErrNoTransaction error = &Error{Code: NotImplemented, Message: "not implemented"}

// ErrInterrupted: Begin was told to stop waiting.
var ErrInterrupted error = &Error{Code: LogicInconsistency, Message: "interrupted"}

// OpenError says which database could not be opened and why.
type OpenError struct {
	Expr string
	Err  error
}

// Error names the database and the reason.
func (e *OpenError) Error() string { return e.Expr + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *OpenError) Unwrap() error { return e.Err }

// LogError says that an update log could not be opened, or has failed.
type LogError struct {
	Dir string
	Err error
}

// Error names the log's directory and the reason.
func (e *LogError) Error() string { return e.Dir + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *LogError) Unwrap() error { return e.Err }
