package pg

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"gotycoon/db/engine"
)

// SQLSTATEs that say more than their class, see appendix A of PostgreSQL's manual.
const (
	readOnly     = "25006"
	uniqueKey    = "23505"
	usedUp       = "2200H" // a sequence has reached its end
	diskFull     = "53100"
	noConnection = "53300" // too many of them
	needed       = "2BP01" // something depends on what shall be removed
	disowned     = "TY001" // ours, of the function note; PostgreSQL's own begin with other letters
)

// mean says what an error of PostgreSQL says about a call. changes tells whether the call changes
// something, so that its outcome may be unknown.
//
// A message with the severity ERROR means that the transaction was undone. FATAL ends the session,
// and may come behind a commit that was waiting for a standby: the outcome is not known. The
// Severity of a message is a word of the language that PostgreSQL speaks (lc_messages).
func mean(err error, changes bool) error {
	if err == nil {
		return nil
	}
	var ours *engine.Error
	if errors.As(err, &ours) {
		return err
	}
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) {
		open := engine.Undone
		var connect *pgconn.ConnectError
		if changes && !errors.As(err, &connect) && !pgconn.SafeToRetry(err) {
			open = engine.Unknown
		}
		return &engine.Error{Kind: open, Away: true, Err: err}
	}
	kind, away := engine.Undone, false
	class := refusal.Code[:min(2, len(refusal.Code))]
	ended := refusal.SeverityUnlocalized != "ERROR" || class == "08"
	switch {
	case ended && changes: // whatever the reason
		kind, away = engine.Unknown, true
	case refusal.Code == diskFull:
		kind = engine.Full
	case refusal.Code == uniqueKey:
		return engine.ErrPassed
	case refusal.Code == disowned:
		return engine.ErrDisowned
	case refusal.Code == readOnly, refusal.Code == noConnection:
		away = true // another host may be the primary, other connections may end
	case refusal.Code == usedUp, class == "22", class == "42", class == "54", class == "0A":
		kind = engine.Refused // what does not fit, and functions that are not there
	case ended:
		away = true
	}
	return &engine.Error{Kind: kind, Away: away, Err: err}
}

// isCode reports whether PostgreSQL has answered with an SQLSTATE.
func isCode(err error, code string) bool {
	var refusal *pgconn.PgError
	return errors.As(err, &refusal) && refusal.Code == code
}

// undone returns an error that says why nothing has happened.
func undone(why error) error {
	return &engine.Error{Kind: engine.Undone, Away: errors.Is(why, context.DeadlineExceeded), Err: why}
}
