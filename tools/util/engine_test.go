package util_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"gotycoon/db/engine/pg/pgtest"
	"gotycoon/snapshot"
)

// postgres is the server of this package.
var postgres pgtest.Shared

// withPostgres ends the PostgreSQL of the tests before anybody looks for goroutines that are left.
type withPostgres struct{ *testing.M }

func (m withPostgres) Run() int { return postgres.Main(m.M) }

// saved is a snapshot of records that never expire.
func saved(t *testing.T, records ...string) string {
	t.Helper()
	var b bytes.Buffer
	w, err := snapshot.NewWriter(&b, snapshot.Header{})
	require.NoError(t, err)
	for i := 0; i < len(records); i += 2 {
		require.NoError(t, w.Add([]byte(records[i]), append([]byte{0xff, 0xff, 0xff, 0xff, 0xff}, records[i+1]...)))
	}
	require.NoError(t, w.Close())
	return b.String()
}

// TestEngine is the life of an engine, from its setting up to its removal.
func TestEngine(t *testing.T) {
	url := postgres.URL(t)
	fails := func(why string, args ...string) {
		t.Helper()
		r := command("", append([]string{"engine"}, args...)...)
		require.Equal(t, 1, r.exit, args)
		require.Contains(t, r.stderr, why)
	}
	fails("'ktutilmgr engine init", "status", url)
	fails("'ktutilmgr engine init", "check", url)
	require.Contains(t, succeed(t, "", "engine", "init", url, "-sid", "7", "users", "sessions"), "2 databases: users sessions")
	require.Contains(t, succeed(t, "", "engine", "init", url, "-sid", "7", "users", "sessions"), "nothing has changed")
	fails("with the server ID 7, not 1", "init", url, "users", "sessions")
	fails(`["users" "sessions"], not ["users"]`, "init", url, "-sid", "7", "users")
	fails("log=true, not false", "init", url, "-sid", "7", "-no-log", "users", "sessions")

	records := saved(t, "japan", "tokyo", "peru", "lima")
	require.Equal(t, "2 records were loaded\n", succeed(t, records, "engine", "load", url, "users"))
	require.Equal(t, "2 records were loaded\n", succeed(t, records, "engine", "load", url, "users"), "again")
	fails(`no database "people"`, "load", url, "people")
	r := command(records[:len(records)-3], "engine", "load", url, "sessions")
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "the same command can be given again")

	status := succeed(t, "", "engine", "status", url)
	for _, line := range []string{"engine: PostgreSQL ", ", primary\n", "\ndurability: as the engine's: ", "\nserver ID: 7\n", "\ndatabase 0: users, 2 records, ", "\ndatabase 1: sessions, "} {
		require.Contains(t, status, line)
	}
	checked := succeed(t, "", "engine", "check", url)
	require.Regexp(t, `^users: 2 records, checksum [0-9a-f]{16}\nsessions: `, checked)

	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer c.Close(t.Context())
	_, err = c.Exec(t.Context(), "INSERT INTO gotycoon.deltas VALUES (0, 5)")
	require.NoError(t, err)
	fails("users: the engine counts 7 records and has 2", "check", url)

	logOf := func() string {
		_, rest, _ := strings.Cut(succeed(t, "", "engine", "status", url), "\nlog: ")
		id, _, _ := strings.Cut(rest, ",")
		return id
	}
	was := logOf()
	require.Contains(t, succeed(t, "", "engine", "renew", url), "another identity")
	require.Len(t, logOf(), len(was))
	require.NotEqual(t, was, logOf())

	fails("-yes", "drop", url)
	require.Contains(t, succeed(t, "", "engine", "status", url), "users, 7 records")
	require.Contains(t, succeed(t, "", "engine", "drop", url, "-yes"), "removed")
	fails("'ktutilmgr engine init", "status", url)
}

// Mistakes are told before anything is asked of an engine, and no message has a password.
func TestEngineUsage(t *testing.T) {
	for why, args := range map[string][]string{
		"init, status, check, load, renew or drop": {},
		"is no URL":                                   {"status", "localhost"},
		"name the databases":                          {"init", "postgres://h/d"},
		"from 1 to 65535":                             {"init", "postgres://h/d", "-sid", "0", "a"},
		"have no / and no #":                          {"init", "postgres://h/d", "a/b"},
		"different from each other":                   {"init", "postgres://h/d", "a", "a"},
		"there is no engine redis://, only postgres:": {"init", "redis://h/d", "a"},
	} {
		r := command("", append([]string{"engine"}, args...)...)
		require.Equal(t, 1, r.exit, args)
		require.Contains(t, r.stderr, why, args)
	}
	for _, args := range [][]string{{"status", "postgres://kt:secret@127.0.0.1:1/kt"}, {"status", "postgres://kt:secret@127.0.0.1:bad/kt"}} {
		r := command("", append([]string{"engine"}, args...)...)
		require.Equal(t, 1, r.exit)
		require.NotContains(t, r.stderr, "secret")
	}
}
