package httpapi

import (
	"errors"
	"fmt"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/httpapi/message"
	"gotycoon/internal/netio"
	"gotycoon/ulog"
)

// Errors of a call that are no database errors; the errors of a wrong call are in call.go. Their
// texts are those of the original.
var (
	errTimedOut = errors.New("the condition timed out")

	errNotImplemented = errors.New("not implemented")
	errNoScript       = errors.New("the scripting extention is disabled")
	errNoRTS          = errors.New("the RTS file is not set")
	errNoServices     = errors.New("the server has no services' database, " +
		"which a port for locks, sequences or quotas, or -services, gives it")

	errNoWatch = errors.New("the server keeps no update log to watch (-ulog, -sid)")

	errNoCluster = errors.New("the server is in no cluster (-cluster)")

	errElected = errors.New("the cluster decides whom this server follows, and which server is the primary: 'ktremotemgr cluster switchover'")

	errNobody = &ClusterError{Err: errors.New("no primary of the cluster is known now: try again")}

	errRemoveLog = errors.New("removing a file failed")
)

// errManyCursors refuses a cursor.
var errManyCursors = errors.New("too many cursors: a connection may have 10000; " +
	"end some with cur_delete, or use another connection")

// Status codes of the protocol.
const (
	statusOK             = 200
	statusCreated        = 201
	statusNoContent      = 204
	statusBadRequest     = 400
	statusUnauthorized   = 401
	statusForbidden      = 403
	statusNotFound       = 404
	statusGone           = 410
	statusTooLarge       = 413
	statusLogical        = 450
	statusInternal       = 500
	statusNotImplemented = 501
	statusUnavailable    = 503
	statusNoSpace        = 507

	// statusBroken means that the connection broke and nothing was answered.
	statusBroken = 0
)

// scriptError is the outcome of a procedure that is no success, with a status of its own.
type scriptError struct {
	status int // of the response
	text   string
}

// Error returns the text.
func (e *scriptError) Error() string { return e.text }

// noDatabase returns why database has returned nil.
func (c *call) noDatabase() error {
	if c.opts.NoData != "" {
		return &scriptError{status: statusUnavailable, text: c.opts.NoData}
	}
	return errNoDatabase
}

// behindError ends a request whose position has not been reached.
type behindError struct {
	want, at ulog.Stamp
	waited   time.Duration
	follows  bool
}

// Error says how far behind this server is.
func (e *behindError) Error() string {
	whose := "its own log"
	if e.follows {
		whose = "its master's log"
	}
	within := ""
	if e.waited > 0 {
		within = fmt.Sprintf(" within %v", e.waited)
	}
	return fmt.Sprintf("the position %d has not been reached%s: this server has %s up to %d, which is %.3f s older",
		e.want, within, whose, e.at, float64(e.want-e.at)/float64(time.Second))
}

// fewError ends a call that has waited for followers in vain.
type fewError struct {
	have, want int
	at         ulog.Stamp
	waited     time.Duration
}

// Error says how many there are.
func (e *fewError) Error() string {
	return fmt.Sprintf("%d of %d followers have everything up to ts=%d, after %v", e.have, e.want, e.at, e.waited)
}

// ClusterError is why a change of the cluster was not made.
type ClusterError struct {
	Mistake bool // the client has to ask for something else; otherwise later may do
	Err     error
}

// Error returns the reason.
func (e *ClusterError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *ClusterError) Unwrap() error { return e.Err }

// goneError says that the log has no longer what a client wants to hear of.
type goneError struct{ err error }

// Error says what to do.
func (e *goneError) Error() string {
	return "the update log has no longer everything after this time stamp: read the records anew, and watch from now on (" + e.err.Error() + ")"
}

// late reports whether another server was not as far as it should be.
func late(err error) bool {
	_, behind := errors.AsType[*behindError](err)
	_, few := errors.AsType[*fewError](err)
	return behind || few
}

// statusOf chooses the status code of a failed call of p, which is nil for an unknown procedure.
func statusOf(p *procedure, err error) int {
	if e, ok := errors.AsType[*dberr.Error](err); ok {
		switch {
		case dberr.Unavailable(err):
			return statusUnavailable
		case p.expect != dberr.Success && e.Code == p.expect:
			return statusLogical
		case p.uses == usesCursor && e.Code == dberr.NotImplemented:
			return statusNotImplemented
		}
		return statusInternal
	}
	if e, ok := errors.AsType[*scriptError](err); ok {
		return e.status
	}
	if e, ok := errors.AsType[*ClusterError](err); ok && e.Mistake {
		return statusBadRequest
	} else if ok {
		return statusUnavailable
	}
	if _, ok := errors.AsType[*goneError](err); ok {
		return statusGone
	}
	if late(err) {
		return statusUnavailable
	}
	switch {
	case isBadRequest(err):
		return statusBadRequest
	case errors.Is(err, errTimedOut), errors.Is(err, errManyCursors), errors.Is(err, errManyWatches), errors.Is(err, netio.ErrLong),
		errors.Is(err, ulog.ErrManyPins):
		return statusUnavailable
	case errors.Is(err, errNotImplemented), errors.Is(err, errNoScript), errors.Is(err, errNoRTS), errors.Is(err, errNoWatch),
		errors.Is(err, errNoServices), errors.Is(err, errNoCluster), errors.Is(err, errElected):
		return statusNotImplemented
	}
	return statusInternal
}

// restStatus chooses the status code of a failed REST request.
func restStatus(m message.Method, err error) int {
	e, ok := errors.AsType[*dberr.Error](err)
	switch {
	case errors.Is(err, errInvalidParameters):
		return statusBadRequest
	case late(err):
		return statusUnavailable
	case errors.Is(err, errNotImplemented):
		return statusNotImplemented
	case !ok:
		return statusInternal
	case dberr.Unavailable(err):
		return statusUnavailable
	case dberr.Refused(err):
		return statusNoSpace
	case m == message.PUT && (e.Code == dberr.NoRecord || e.Code == dberr.RecordDuplication):
		return statusLogical
	case e.Code == dberr.NoRecord:
		return statusNotFound
	}
	return statusInternal
}

// noMemory reports whether an error says that there is no memory for what a request needs.
func noMemory(err error) bool {
	return errors.Is(err, netio.ErrBusy) || errors.Is(err, netio.ErrTooLarge)
}
