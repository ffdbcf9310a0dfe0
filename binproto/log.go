package binproto

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"gotycoon/binproto/frame"
	"gotycoon/db/dberr"
)

// logRequest logs a request as the original does: 1 if the connection is kept, 0 if it is closed.
func (h *Handler) logRequest(peer string, magic frame.Magic, keep bool) {
	if h.opts.Meters.Sampling || !h.opts.Logger.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	kept := 0
	if keep {
		kept = 1
	}
	h.opts.Logger.Info(fmt.Sprintf("(%s): bin_%s: %d", peer, magic, kept))
}

// logFailure logs a database error. Errors of the connection are not logged.
func (h *Handler) logFailure(err error) {
	if e, ok := errors.AsType[*dberr.Error](err); ok && !dberr.Refused(err) {
		h.opts.Logger.Error("database error: " + e.Error())
	}
}
