package httpapi

import (
	"errors"

	"gotycoon/db/dberr"
	"gotycoon/httpapi/message"
	"gotycoon/internal/netio"
)

// Errors of a call that are no database errors. Their texts are those of the original.
var (
	errInvalidParameters = errors.New("invalid parameters")
	errNoDatabase        = errors.New("no such database")
	errNoCursor          = errors.New("no such cursor")
	errNoLog             = errors.New("no update log allows no replication")

	errTimedOut = errors.New("the condition timed out")

	errNotImplemented = errors.New("not implemented")
	errNoScript       = errors.New("the scripting extention is disabled")
	errNoRTS          = errors.New("the RTS file is not set")
	errNoServices     = errors.New("the server has no services' database, " +
		"which a port for locks, sequences or quotas, or -services, gives it")

	errRemoveLog = errors.New("removing a file failed")
)

// errBroken means that the connection has broken; nobody is there to be answered.
var errBroken = errors.New("the connection is broken")

// statusOf chooses the status code of a call of p, which is nil for an unknown procedure.
func statusOf(p *procedure, err error) int {
	if err == nil {
		return statusOK
	}
	if e, ok := errors.AsType[*dberr.Error](err); ok {
		switch {
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
	switch {
	case isBadRequest(err):
		return statusBadRequest
	case errors.Is(err, errTimedOut), errors.Is(err, errManyCursors), errors.Is(err, netio.ErrLong):
		return statusUnavailable
	case errors.Is(err, errNotImplemented), errors.Is(err, errNoScript), errors.Is(err, errNoRTS),
		errors.Is(err, errNoServices):
		return statusNotImplemented
	}
	return statusInternal
}

// isBadRequest reports whether the call as such was wrong. Such calls are not counted.
func isBadRequest(err error) bool {
	if _, ok := errors.AsType[*dberr.Error](err); ok { // the usual case
		return false
	}
	return errors.Is(err, errInvalidParameters) || errors.Is(err, errNoDatabase) ||
		errors.Is(err, errNoCursor) || errors.Is(err, errNoLog)
}

// restStatus chooses the status code of a failed REST request.
func restStatus(m message.Method, err error) int {
	e, ok := errors.AsType[*dberr.Error](err)
	switch {
	case !ok:
		return statusInternal
	case dberr.Refused(err):
		return statusNoSpace
	case m == message.PUT && (e.Code == dberr.NoRecord || e.Code == dberr.RecordDuplication):
		return statusLogical
	case e.Code == dberr.NoRecord:
		return statusNotFound
	}
	return statusInternal
}
