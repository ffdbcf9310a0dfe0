package pg

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"gotycoon/db/engine"
)

// Drop removes everything of gotycoon, also what another version has set up, and nothing else.
//
// DROP SCHEMA gotycoon CASCADE would also remove what others have put there, and views and foreign
// keys of theirs in other schemas. Therefore only what we have made is removed, by name, and each
// time without CASCADE: PostgreSQL itself then looks whether anything needs it, and whether the
// schema is empty in the end. If not, it names what is in the way, and nothing has changed.
func Drop(ctx context.Context, url string) error {
	return change(ctx, url, func(c *pgx.Conn) error {
		err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return drop(ctx, tx) })
		var refusal *pgconn.PgError
		if isCode(err, needed) && errors.As(err, &refusal) {
			return &engine.Error{Kind: engine.Refused, Err: fmt.Errorf(
				"nothing was removed, because the schema gotycoon has what is not gotycoon's, or something else needs it: %s: remove that first, or move it elsewhere",
				inTheWay(refusal.Detail))}
		}
		return err
	})
}

// inTheWay shortens PostgreSQL's list of what depends on something.
func inTheWay(detail string) string {
	const most = 5
	lines := strings.Split(strings.TrimSpace(detail), "\n")
	if more := len(lines) - most; more > 0 {
		lines = append(lines[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "; ")
}

// thingsSQL names what may be ours. A function's name stands there twice: with its parameters, and
// quoted where that is needed, for PostgreSQL; and alone.
const thingsSQL = `SELECT CASE relkind WHEN 'r' THEN 'TABLE' ELSE 'SEQUENCE' END, relname::text, oid::regclass::text FROM pg_class
		WHERE relnamespace = 'gotycoon'::regnamespace AND relkind IN ('r', 'S')
	UNION ALL SELECT 'FUNCTION', proname::text, oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'gotycoon'::regnamespace AND prokind = 'f'`

func drop(ctx context.Context, tx pgx.Tx) error {
	if err := trust(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, safePath); err != nil {
		return err
	}
	var made bool
	if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM gotycoon.meta WHERE name = 'format')").Scan(&made); err != nil {
		return err
	}
	if !made {
		return errForeign
	}
	rows, err := tx.Query(ctx, thingsSQL)
	if err != nil {
		return err
	}
	remove, is := map[string][]string{}, ours()
	var kind, name, whole string
	if _, err := pgx.ForEachRow(rows, []any{&kind, &name, &whole}, func() error {
		if is.MatchString(kind + " " + name) {
			remove[kind] = append(remove[kind], whole)
		}
		return nil
	}); err != nil {
		return err
	}
	for _, kind := range []string{"TABLE", "SEQUENCE", "FUNCTION"} {
		if len(remove[kind]) == 0 {
			continue
		}
		if _, err := tx.Exec(ctx, "DROP "+kind+" "+strings.Join(remove[kind], ", ")+" RESTRICT", pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, "DROP SCHEMA gotycoon RESTRICT")
	return err
}

// formerly is what former versions had, and the present one does not make.
const formerly = "CREATE FUNCTION give_all_{n}"

// ours returns how the kind and the name of what gotycoon has made look.
func ours() *regexp.Regexp {
	var names []string
	for _, made := range regexp.MustCompile(`CREATE ((?:TABLE|SEQUENCE|FUNCTION) [a-z0-9_]+(?:\{n\})?)`).FindAllStringSubmatch(schemaSQL+tableSQL+formerly, -1) {
		names = append(names, strings.ReplaceAll(made[1], "{n}", `(0|[1-9]\d{0,4})`))
	}
	return regexp.MustCompile("^(" + strings.Join(names, "|") + ")$")
}
