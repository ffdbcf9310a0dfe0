package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"gotycoon/db/engine"
)

// Whoever owns a schema decides what its functions, views and triggers do, and they do it with the
// rights of the role that uses them. Somebody who may make a schema in our database can make one
// with our name before we do. An administrator who then asks for its status would carry out
// whatever is in there, as a superuser. Therefore readMeta, which everything begins with, asks the
// catalogs first whose the schema is.
//
// Trusted are the role that has connected (the session's: code can go back to it from one of SET
// ROLE), superusers, who may do everything anyhow, and groups to which the role belongs and as
// which nobody can connect. A role that can connect is somebody else, also where we belong to it:
// administrators belong to roles for which they make databases. And a superuser belongs to all.
//
// The question itself must not carry out what is in the schema: in a path that its owner has set
// for the database (ALTER DATABASE … SET search_path), functions and operators of the schema could
// come before PostgreSQL's own. What is asked before this, in settings and refusePooler, has whole
// names instead.
const ownerSQL = `WITH ns AS (SELECT oid, nspowner FROM pg_namespace WHERE nspname = 'gotycoon'),
	things (rank, what, owner) AS (
		SELECT 0, 'schema gotycoon', nspowner FROM ns
		UNION ALL SELECT 1, CASE relkind WHEN 'v' THEN 'view ' WHEN 'S' THEN 'sequence ' ELSE 'table ' END || relname, relowner
			FROM pg_class JOIN ns ON relnamespace = ns.oid WHERE relkind NOT IN ('i', 'I', 'c') -- the owners of indexes are those of tables
		UNION ALL SELECT 2, 'function ' || proname || '(' || pg_get_function_identity_arguments(pg_proc.oid) || ')', proowner
			FROM pg_proc JOIN ns ON pronamespace = ns.oid
		UNION ALL SELECT 3, 'operator ' || oprname, oprowner FROM pg_operator JOIN ns ON oprnamespace = ns.oid
		UNION ALL SELECT 4, 'type ' || typname, typowner FROM pg_type JOIN ns ON typnamespace = ns.oid
			WHERE typrelid = 0 AND typcategory <> 'A' -- those of tables and arrays come with others
	),
	strange (what, role) AS (
		SELECT what, pg_get_userbyid(owner)::text
		FROM things LEFT JOIN pg_roles o ON o.oid = owner JOIN pg_roles me ON me.rolname = session_user
		WHERE (o.oid = me.oid OR o.rolsuper OR NOT me.rolsuper AND NOT o.rolcanlogin AND pg_has_role(current_user, o.oid, 'USAGE')) IS NOT TRUE
		ORDER BY rank, what LIMIT 1
	)
	SELECT (SELECT count(*) FROM ns) = 1, session_user::text, coalesce((SELECT what FROM strange), ''), coalesce((SELECT role FROM strange), ''),
		(SELECT count(*) FROM pg_class c JOIN ns ON relnamespace = ns.oid JOIN pg_attribute ON attrelid = c.oid
			WHERE relname = 'meta' AND relkind = 'r' AND attname IN ('name', 'value') AND atttypid = 'text'::regtype) = 2`

// safePath is a path for a transaction in which PostgreSQL's own names come first, and no others.
const safePath = "SET LOCAL search_path = pg_catalog, pg_temp"

// asker is a connection, or a transaction.
type asker interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Query(ctx context.Context, text string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, text string, args ...any) pgx.Row
}

// errForeign is the error where a schema with our name is not ours.
var errForeign error = &engine.Error{Kind: engine.Refused, Err: errors.New(
	"the schema gotycoon of this PostgreSQL database was not made by gotycoon, whose table meta it lacks, or comes from a dump of which the end is " +
		"missing: take another database, or give that schema another name (ALTER SCHEMA gotycoon RENAME TO …)")}

// trust makes sure that the schema gotycoon is there, and that what is in it may be carried out.
func trust(ctx context.Context, c asker) error {
	tx, err := c.Begin(ctx)
	if err != nil {
		return mean(err, false)
	}
	defer func() { _ = tx.Rollback(ctx) }() // it only sets the path, for itself
	if _, err := tx.Exec(ctx, safePath); err != nil {
		return mean(err, false)
	}
	var there, meta bool
	var me, what, owner string
	if err := tx.QueryRow(ctx, ownerSQL).Scan(&there, &me, &what, &owner, &meta); err != nil {
		return mean(err, false)
	}
	var why error
	switch {
	case !there:
		return ErrNotSetUp
	case what == "" && !meta:
		return errForeign
	case what == "":
		return nil
	case what == "schema gotycoon":
		why = fmt.Errorf("the %s of this PostgreSQL database belongs to the role %q, and this URL connects as %q, with whose rights everything in it would be carried out: connect as %[2]q "+
			"if that is gotycoon's role here; otherwise somebody else has made the schema: look what it is, and remove it or take another database", what, owner, me)
	default:
		why = fmt.Errorf("the %s in the schema gotycoon belongs to the role %q, and this URL connects as %q, with whose rights it would be carried out: look what it is, "+
			"then remove it, or give it to the owner of the schema (ALTER … OWNER TO …)", what, owner, me)
	}
	return &engine.Error{Kind: engine.Refused, Err: why}
}
