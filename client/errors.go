package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Code is the kind of an error. The numbers are those that the command-line tools print.
type Code int

// The codes, with their HTTP statuses.
const (
	NotImplemented Code = 1 // 501
	Invalid        Code = 2 // 400
	Logic          Code = 3 // 450: no record, a duplicate, a conflict
	Miscellaneous  Code = 4 // all others, such as 503: a signal did not come in time
	Internal       Code = 5 // 500
	Network        Code = 6 // no reply
)

// String returns the name that the command-line tools print.
func (c Code) String() string {
	switch c {
	case NotImplemented:
		return "not implemented"
	case Invalid:
		return "invalid operation"
	case Logic:
		return "logical inconsistency"
	case Internal:
		return "internal error"
	case Network:
		return "network error"
	}
	return "miscellaneous error"
}

// Error is the error of a call.
type Error struct {
	Code    Code
	Message string // from the server
	Err     error  // cause of a Network error, or one of the errors below; may be nil
	Sent    bool   // of a Network error: the server may have got the call, and carried it out
}

// Error returns "CODE: NAME: MESSAGE".
func (e *Error) Error() string { return fmt.Sprintf("%d: %s: %s", int(e.Code), e.Code, e.Message) }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Errors to test for with errors.Is.
var (
	ErrNoRecord  = errors.New("no record")                // no such record; a cursor is at the end
	ErrDuplicate = errors.New("the record exists")        // of Add
	ErrConflict  = errors.New("the record is in the way") // CAS, increments: not the expected state
	ErrTimeout   = errors.New("the condition timed out")  // no signal came in time
	ErrNetwork   = errors.New("no reply")                 // any error with the code Network
	ErrDenied    = errors.New("access denied")            // credentials or rights are missing

	ErrNotSent        = errors.New("not sent")               // Network: nothing has been done
	ErrOutcomeUnknown = errors.New("the outcome is unknown") // Network: it may have been done
	ErrReadOnly       = errors.New("permission denied")      // the server refuses updates
	ErrNoPrimary      = errors.New("no server is the primary")

	ErrGap         = errors.New("updates are missing")      // Watch, Follow: the log has them no more
	ErrLogChanged  = errors.New("it is another update log") // Follow: not that of FollowOptions.LogID
	ErrWrongServer = errors.New("another kind of server answers: is it its port")
)

// Is reports whether the error matches one of the errors above, or errors.ErrUnsupported.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrNoRecord:
		return e.Code == Logic && strings.HasPrefix(e.Message, "DB: 7:")
	case ErrDuplicate:
		return e.Code == Logic && strings.HasPrefix(e.Message, "DB: 6:")
	case ErrConflict:
		return e.Code == Logic && strings.HasPrefix(e.Message, "DB: 8:")
	case ErrTimeout:
		return e.Code == Miscellaneous && e.Message == ErrTimeout.Error()
	case ErrDenied:
		return e.Code == Miscellaneous && strings.HasPrefix(e.Message, ErrDenied.Error()+": ")
	case errors.ErrUnsupported:
		return e.Code == NotImplemented
	case ErrNetwork:
		return e.Code == Network
	case ErrNotSent:
		return e.Code == Network && !e.Sent
	case ErrOutcomeUnknown:
		return e.Code == Network && e.Sent
	case ErrReadOnly: // or a member of a cluster that knows no primary
		return e.Code == Internal && strings.HasPrefix(e.Message, "DB: 4:") ||
			e.Code == Miscellaneous && strings.HasPrefix(e.Message, "DB: 9: system error: no primary ")
	}
	return false
}

const statusLogic = 450

// callError makes an error of a reply. Without a message from the procedure, the message is the
// status.
func callError(res *http.Response, message string) error {
	if message == "" {
		message = res.Status
	}
	code := Miscellaneous
	var cause error
	switch res.StatusCode {
	case http.StatusGone:
		cause = ErrGap
	case http.StatusNotFound, http.StatusMethodNotAllowed: // every server of the protocol has /rpc/
		cause = ErrWrongServer
	case http.StatusBadRequest:
		code = Invalid
	case statusLogic:
		code = Logic
	case http.StatusInternalServerError:
		code = Internal
	case http.StatusNotImplemented:
		code = NotImplemented
	}
	return &Error{Code: code, Message: message, Err: cause}
}

// networkError is the error of a call without a reply.
func networkError(err error) error {
	return &Error{Code: Network, Message: err.Error(), Err: err}
}
