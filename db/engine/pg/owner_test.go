package pg_test

import (
	"fmt"
	"math/rand/v2"
	neturl "net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"gotycoon/db/engine/pg"
)

// newRole makes a role of the tests' server, which other tests do not have.
func newRole(t testing.TB, admin *pgx.Conn, options string) string {
	name := fmt.Sprintf("role%x", rand.Uint64())
	run(t, admin, "CREATE ROLE "+name+" "+options)
	return name
}

// as returns a URL for another role, with what else it shall have.
func as(t testing.TB, url, role, more string) string {
	u, err := neturl.Parse(url)
	require.NoError(t, err)
	u.User = neturl.User(role)
	u.RawQuery += more
	return u.String()
}

// everyWay tries all that can be done at a URL.
func everyWay(t *testing.T, url string, check func(err error)) {
	t.Helper()
	_, err := pg.Init(t.Context(), url, pg.Setup{SID: 1, Log: true, Databases: []string{"a", "b"}})
	check(err)
	_, err = pg.ReadStatus(t.Context(), url)
	check(err)
	e, err := pg.Open(t.Context(), url, pg.Options{})
	check(err)
	if err == nil {
		require.NoError(t, e.Close())
	}
	_, _, err = pg.Renew(t.Context(), url)
	check(err)
	check(pg.Drop(t.Context(), url))
}

// What is in a schema runs with the rights of who uses it. So nothing of a schema is used that
// another role has made, whatever was prepared for it.
func TestASchemaOfAnotherRole(t *testing.T) {
	url := server.URL(t)
	admin := direct(t, url)
	database, err := pgx.ParseConfig(url)
	require.NoError(t, err)
	mallory, kt := newRole(t, admin, "LOGIN"), newRole(t, admin, "LOGIN")
	run(t, admin, "ALTER DATABASE "+database.Database+" OWNER TO "+mallory)
	owner := direct(t, as(t, url, mallory, ""))
	for _, statement := range []string{
		"CREATE SCHEMA gotycoon",
		"CREATE TABLE gotycoon.ran (who text)",
		"CREATE FUNCTION gotycoon.mark() RETURNS text LANGUAGE plpgsql AS $$ BEGIN INSERT INTO gotycoon.ran VALUES (current_user); RETURN 'x'; END $$",
		"CREATE VIEW gotycoon.meta AS SELECT gotycoon.mark() AS name, 'v'::text AS value",
		// what would come before PostgreSQL's own, and fit better
		"CREATE FUNCTION gotycoon.pg_backend_pid() RETURNS int LANGUAGE sql AS 'SELECT length(gotycoon.mark())'",
		"CREATE FUNCTION gotycoon.set_config(text, text, bool) RETURNS text LANGUAGE sql AS 'SELECT gotycoon.mark()'",
		"CREATE FUNCTION gotycoon.pg_advisory_xact_lock(text, int) RETURNS text LANGUAGE sql AS 'SELECT gotycoon.mark()'",
		"CREATE FUNCTION gotycoon.to_regclass(varchar) RETURNS text LANGUAGE sql AS 'SELECT gotycoon.mark()'",
		"CREATE VIEW gotycoon.pg_settings AS SELECT gotycoon.mark() AS name",
		"CREATE VIEW gotycoon.pg_namespace AS SELECT gotycoon.mark() AS nspname, 1::oid AS nspowner, 2::oid AS oid",
		"CREATE FUNCTION gotycoon.same(text, text) RETURNS bool LANGUAGE sql AS 'SELECT gotycoon.mark() IS NOT NULL'",
		"CREATE OPERATOR gotycoon.= (LEFTARG = text, RIGHTARG = text, FUNCTION = gotycoon.same)",
		"GRANT ALL ON SCHEMA gotycoon TO PUBLIC; GRANT ALL ON ALL TABLES IN SCHEMA gotycoon TO PUBLIC",
		"ALTER DATABASE " + database.Database + " SET search_path = gotycoon, pg_catalog",
		"GRANT CONNECT ON DATABASE " + database.Database + " TO PUBLIC",
	} {
		run(t, owner, statement)
	}
	for _, role := range []string{"postgres", kt} {
		everyWay(t, as(t, url, role, ""), func(err error) {
			t.Helper()
			require.ErrorContains(t, err, fmt.Sprintf("the schema gotycoon of this PostgreSQL database belongs to the role %q", mallory))
			require.ErrorContains(t, err, fmt.Sprintf("connects as %q", role))
			require.Equal(t, err, pg.Advise(err), "it says what to do itself")
		})
	}
	var ran int
	require.NoError(t, owner.QueryRow(t.Context(), "SELECT count(*) FROM gotycoon.ran").Scan(&ran))
	require.Zero(t, ran, "nothing of the schema was carried out")
}

// A role uses its own schema, that of an administrator, who may do everything anyhow, and that of a
// group to which it belongs. An administrator does not use that of another role.
func TestOwners(t *testing.T) {
	url := server.URL(t)
	admin := direct(t, url)
	group := newRole(t, admin, "NOLOGIN")
	kt, member := newRole(t, admin, "LOGIN"), newRole(t, admin, "LOGIN IN ROLE "+group)
	database, err := pgx.ParseConfig(url)
	require.NoError(t, err)
	run(t, admin, fmt.Sprintf("GRANT ALL ON DATABASE %s TO %s, %s", database.Database, kt, group))
	fine := func(err error) { t.Helper(); require.NoError(t, err) }
	refused := func(err error) { t.Helper(); require.ErrorContains(t, err, "belongs to the role") }

	initialise(t, as(t, url, kt, ""))
	everyWay(t, url, refused)
	everyWay(t, as(t, url, member, ""), refused)
	everyWay(t, as(t, url, "postgres", "&role="+kt), refused)
	other := newRole(t, admin, "LOGIN IN ROLE "+kt)
	everyWay(t, as(t, url, other, ""), refused)
	everyWay(t, as(t, url, other, "&role="+kt), refused)

	run(t, admin, "CREATE FUNCTION gotycoon.put_0(int) RETURNS int LANGUAGE sql AS 'SELECT 1'")
	_, err = pg.ReadStatus(t.Context(), as(t, url, kt, ""))
	require.NoError(t, err, "an administrator has made it")
	run(t, admin, "DROP FUNCTION gotycoon.put_0(int)")
	for what, make := range map[string]string{
		"TABLE gotycoon.more": "(a int)", "VIEW gotycoon.more": "AS SELECT 1", "SEQUENCE gotycoon.more": "",
		"FUNCTION gotycoon.more()": "RETURNS int LANGUAGE sql AS 'SELECT 1'", "TYPE gotycoon.more": "AS ENUM ('a')",
	} {
		run(t, admin, "CREATE "+what+" "+make)
		run(t, admin, fmt.Sprintf("ALTER %s OWNER TO %s", what, member))
		everyWay(t, as(t, url, kt, ""), func(err error) {
			t.Helper()
			require.ErrorContains(t, err, fmt.Sprintf("%s in the schema gotycoon belongs to the role %q", strings.ToLower(strings.Replace(what, "gotycoon.", "", 1)), member))
			require.ErrorContains(t, err, "OWNER TO")
		})
		run(t, admin, "DROP "+what)
	}
	everyWay(t, as(t, url, kt, ""), fine)

	initialise(t, as(t, url, member, "&role="+group))
	everyWay(t, url, refused)
	everyWay(t, as(t, url, member, ""), fine)

	initialise(t, url)
	run(t, admin, fmt.Sprintf("GRANT ALL ON SCHEMA gotycoon TO %s; GRANT ALL ON ALL TABLES IN SCHEMA gotycoon TO %[1]s; GRANT ALL ON ALL SEQUENCES IN SCHEMA gotycoon TO %[1]s", kt))
	_, err = pg.ReadStatus(t.Context(), as(t, url, kt, ""))
	require.NoError(t, err)
	everyWay(t, url, fine)
}

// Where everybody may connect, everybody may take our locks, and send signals.
func TestAnOpenDatabaseIsTold(t *testing.T) {
	url := setUp(t)
	s, err := pg.ReadStatus(t.Context(), url)
	require.NoError(t, err)
	require.False(t, s.Public)
	admin := direct(t, url)
	database, err := pgx.ParseConfig(url)
	require.NoError(t, err)
	run(t, admin, "GRANT CONNECT ON DATABASE "+database.Database+" TO PUBLIC")
	s, err = pg.ReadStatus(t.Context(), url)
	require.NoError(t, err)
	require.True(t, s.Public)
}
