package binproto

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"gotycoon/binproto/frame"
	"gotycoon/db"
)

// logRequest writes the line that every request gets (1.3): 1 when the connection is kept, 0 when it is closed.
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

// logFailure writes the line about a database error. Errors of the connection have none.
func (h *Handler) logFailure(err error) {
	if e, ok := errors.AsType[*db.Error](err); ok && !db.Refused(err) {
		h.opts.Logger.Error("database error: " + e.Error())
	}
}
