package pg_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine/pg"
)

// A schema with our name that somebody else has made is neither used nor removed, and neither is
// what depends on it.
func TestAForeignSchema(t *testing.T) {
	url := server.URL(t)
	admin := direct(t, url)
	run(t, admin, "CREATE SCHEMA gotycoon; CREATE TABLE gotycoon.precious (a int); CREATE VIEW public.vv AS SELECT * FROM gotycoon.precious")
	refused := func() {
		t.Helper()
		require.ErrorContains(t, pg.Drop(t.Context(), url), "not made by gotycoon")
		_, err := pg.ReadStatus(t.Context(), url)
		require.ErrorContains(t, err, "not made by gotycoon")
		_, err = pg.Init(t.Context(), url, pg.Setup{SID: 1, Databases: []string{"a"}})
		require.ErrorContains(t, err, "ALTER SCHEMA gotycoon RENAME TO")
		_, err = pg.Open(t.Context(), url, pg.Options{})
		require.ErrorContains(t, err, "not made by gotycoon")
		_, _, err = pg.Renew(t.Context(), url)
		require.ErrorContains(t, err, "not made by gotycoon")
		run(t, admin, "SELECT * FROM public.vv")
	}
	refused()
	run(t, admin, "CREATE TABLE gotycoon.meta (a int)")
	refused()
	run(t, admin, "DROP TABLE gotycoon.meta; CREATE VIEW gotycoon.meta AS SELECT 'format'::text AS name, '5'::text AS value")
	refused()
	run(t, admin, "DROP VIEW gotycoon.meta; CREATE TABLE gotycoon.meta (name text, value text)")
	require.ErrorContains(t, pg.Drop(t.Context(), url), "not made by gotycoon", "its meta is empty")
	run(t, admin, "SELECT * FROM public.vv")
}

// Our schema is not removed while it has what is not ours, or something outside of it needs it. The
// error names that, and nothing is removed then.
func TestDropTakesNothingElse(t *testing.T) {
	url := setUp(t)
	admin := direct(t, url)
	for _, foreign := range []struct{ make, named, remove string }{
		{"CREATE TABLE gotycoon.precious (a int)", "table gotycoon.precious", "DROP TABLE gotycoon.precious"},
		{"CREATE TABLE gotycoon.groups_2024 (a int)", "table gotycoon.groups_2024", "DROP TABLE gotycoon.groups_2024"},
		{"CREATE FUNCTION gotycoon.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'", "function gotycoon.mine()", "DROP FUNCTION gotycoon.mine()"},
		{"CREATE VIEW gotycoon.v AS SELECT * FROM gotycoon.r0", "view gotycoon.v", "DROP VIEW gotycoon.v"},
		{"CREATE TYPE gotycoon.colour AS ENUM ('red')", "type gotycoon.colour", "DROP TYPE gotycoon.colour"},
		{"CREATE VIEW public.vv AS SELECT * FROM gotycoon.r1", "view public.vv", "DROP VIEW public.vv"},
		{"CREATE TABLE public.t (k bytea REFERENCES gotycoon.r0)", "on table public.t", "DROP TABLE public.t"},
		{"CREATE TABLE public.t (n int DEFAULT nextval('gotycoon.lanes'))", "of table public.t", "DROP TABLE public.t"},
		{"CREATE TABLE public.t () INHERITS (gotycoon.deltas)", "table public.t", "DROP TABLE public.t"},
		{"CREATE VIEW public.f AS SELECT gotycoon.lasts('x', 1, '')", "view public.f", "DROP VIEW public.f"},
	} {
		run(t, admin, foreign.make)
		err := pg.Drop(t.Context(), url)
		require.ErrorContains(t, err, foreign.named)
		require.ErrorContains(t, err, "nothing was removed")
		_, err = pg.ReadStatus(t.Context(), url)
		require.NoError(t, err)
		run(t, admin, foreign.remove)
	}
	for _, n := range "abcdefgh" {
		run(t, admin, "CREATE TABLE gotycoon.more_"+string(n)+" (a int)")
	}
	err := pg.Drop(t.Context(), url)
	require.ErrorContains(t, err, "gotycoon.more_")
	require.ErrorContains(t, err, "and 3 more")
	run(t, admin, "DROP TABLE gotycoon.more_a, gotycoon.more_b, gotycoon.more_c, gotycoon.more_d, gotycoon.more_e, gotycoon.more_f, gotycoon.more_g, gotycoon.more_h")
	// what an administrator has given to our tables goes with them
	run(t, admin, "CREATE INDEX further ON gotycoon.r0 (ver); CREATE FUNCTION gotycoon.give_all_0() RETURNS int LANGUAGE sql AS 'SELECT 1'")
	require.NoError(t, pg.Drop(t.Context(), url), "also functions of former versions")
	require.ErrorIs(t, pg.Drop(t.Context(), url), pg.ErrNotSetUp)
}
