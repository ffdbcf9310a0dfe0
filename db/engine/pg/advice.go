package pg

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATEs of who is not let in, or may not do what the engine needs.
const (
	notAuthorized = "28000"
	wrongPassword = "28P01"
	noDatabase    = "3D000"
	noRight       = "42501"
)

// Advise returns an error of a connection, or of who sets up an engine, with what to do behind it.
// Other errors stay as they are.
func Advise(err error) error {
	if what := advice(err); what != "" {
		return fmt.Errorf("%w: %s", err, what)
	}
	return err
}

func advice(err error) string {
	var connect *pgconn.ConnectError
	switch {
	case isCode(err, wrongPassword), isCode(err, notAuthorized):
		return "the URL names the user, a file of libpq (PGPASSFILE) has the password, and PostgreSQL's pg_hba.conf says who may come from where"
	case isCode(err, noDatabase):
		return "PostgreSQL's administrator makes the database: CREATE DATABASE … OWNER …"
	case isCode(err, noRight):
		return "the role that the URL names must own the database, and the schema gotycoon in it"
	case isCode(err, noConnection):
		return "PostgreSQL has no connection left, see its max_connections and the role's CONNECTION LIMIT: each server takes up to 34"
	case errors.Is(err, pgconn.ErrReadOnlyConnection): // of the hosts that have answered
		return "a standby takes no updates: look whether the primary runs, and whether the URL names it, or whether default_transaction_read_only is on there; " +
			"'ktserver -ord' and 'ktutilmgr engine status' are content with a standby"
	case isCode(err, readOnly):
		return "PostgreSQL takes no updates: it is a standby, or default_transaction_read_only is on, which services set whose disk is full"
	case errors.As(err, &connect) && !isRefusal(err):
		return "look whether PostgreSQL runs there and can be reached from here, and whether the URL has its hosts and ports"
	}
	return ""
}

// isRefusal reports whether an error is PostgreSQL's own word.
func isRefusal(err error) bool {
	var refusal *pgconn.PgError
	return errors.As(err, &refusal)
}
