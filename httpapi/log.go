package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"gotycoon/db"
)

// requestLine returns the line of the request for the log, or "" when nobody reads it. Serving the request changes
// the buffer.
func (s *Session) requestLine() string {
	if s.h.opts.Meters.Sampling || !s.h.opts.Logger.Enabled(context.Background(), slog.LevelInfo) {
		return ""
	}
	return string(s.req.Line())
}

// logRequest writes the line that every parsed request gets (1.3).
func (s *Session) logRequest(line string, status int) {
	if line == "" || status == statusBroken {
		return
	}
	s.h.opts.Logger.Info(fmt.Sprintf("(%s): %s: %d", s.peer, line, status))
}

// logFailure writes the line about a database error that was not expected.
func (s *Session) logFailure(status int, err error) {
	if status != statusInternal || db.Refused(err) {
		return
	}
	if e, ok := errors.AsType[*db.Error](err); ok {
		s.h.opts.Logger.Error("database error: " + e.Error())
	}
}
