package util_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"gotycoon/db/engine/pg/pgtest"
	"gotycoon/db/filestore"
	"gotycoon/db/rebuild"
	"gotycoon/db/record"
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

	require.NotContains(t, succeed(t, "", "engine", "status", url), "warning")
	_, err = c.Exec(t.Context(), "GRANT CONNECT ON DATABASE "+c.Config().Database+" TO PUBLIC")
	require.NoError(t, err)
	require.Contains(t, succeed(t, "", "engine", "status", url), "warning: every role of this PostgreSQL may connect")

	_, err = c.Exec(t.Context(), "CREATE VIEW public.theirs AS SELECT * FROM gotycoon.r0")
	require.NoError(t, err)
	fails("view public.theirs", "drop", url, "-yes")
	_, err = c.Exec(t.Context(), "DROP VIEW public.theirs")
	require.NoError(t, err)

	fails("-yes", "drop", url)
	require.Contains(t, succeed(t, "", "engine", "status", url), "users, 7 records")
	require.Contains(t, succeed(t, "", "engine", "drop", url, "-yes"), "removed")
	fails("'ktutilmgr engine init", "status", url)
}

// A database file is loaded into a database whose records expire, and into one of which they do not,
// whichever of the two it is from. A file that lacks what is in its log is refused.
func TestEngineLoadsDatabaseFiles(t *testing.T) {
	url, dir := postgres.URL(t), t.TempDir()
	require.Contains(t, succeed(t, "", "engine", "init", url, "mortal", "lasting#ktopts=p"), "mortal lasting#ktopts=p")
	require.Contains(t, succeed(t, "", "engine", "status", url), "\ndatabase 1: lasting#ktopts=p, 0 records, ")
	r := command("", "engine", "init", url, "mortal", "lasting")
	require.Contains(t, r.stderr, `["mortal" "lasting#ktopts=p"], not ["mortal" "lasting"]`)
	write := func(name string, m filestore.Meta, value string) string {
		path := filepath.Join(dir, name)
		m.ID = filestore.NewID()
		require.NoError(t, rebuild.Write(path, m, func(put func(key, value []byte) error) error {
			return errors.Join(put([]byte(name), []byte(value)), put([]byte("z"+name), []byte(value)))
		}))
		return path
	}
	later := string(record.AppendXT(nil, 1<<33)) + "later"
	for _, file := range []string{
		write("a.kct", filestore.Meta{Clean: true}, later),
		write("b.kch", filestore.Meta{Clean: true, Persistent: true}, "ever"),
	} {
		for _, name := range []string{"mortal", "lasting"} {
			require.Equal(t, "2 records were loaded\n", succeed(t, "", "engine", "load", url, name, file))
		}
	}
	r = command("", "engine", "load", url, "mortal", write("c.kct", filestore.Meta{}, later))
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "kttimedmgr dump "+filepath.Join(dir, "c.kct"))

	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer c.Close(t.Context())
	for db, want := range map[string]string{"r0": "a.kct later 8589934592, b.kch ever 1099511627775, za.kct later 8589934592, zb.kch ever 1099511627775",
		"r1": "a.kct later 1099511627775, b.kch ever 1099511627775, za.kct later 1099511627775, zb.kch ever 1099511627775"} {
		var got string
		require.NoError(t, c.QueryRow(t.Context(), `SELECT string_agg(convert_from(k, 'UTF8') || ' ' || convert_from(v, 'UTF8') || ' ' || xt, ', ' ORDER BY k)
			FROM gotycoon.`+db).Scan(&got))
		require.Equal(t, want, got)
	}
}

// Mistakes are told before anything is asked of an engine, and no message has a password.
func TestEngineUsage(t *testing.T) {
	for why, args := range map[string][]string{
		"init, status, check, load, renew or drop": {},
		"is no URL":                    {"status", "localhost"},
		"such as postgres://USER@HOST": {"status", "host=h dbname=kt"},
		"write %40 for @":              {"check", "postgresql://kt:a@b@h:25/kt"},
		"name the databases":           {"init", "postgres://h/d"},
		"from 1 to 65535":              {"init", "postgres://h/d", "-sid", "0", "a"},
		"have no /":                    {"init", "postgres://h/d", "a/b"},
		"not empty":                    {"init", "postgres://h/d", "a", "#ktopts=p"},
		"in UTF-8":                     {"init", "postgres://h/d", "a", "caf\xe9"},
		"has one parameter, #ktopts=p": {"init", "postgres://h/d", "a", "b#ktopts=p#bnum=5"},
		"different from each other":    {"init", "postgres://h/d", "a", "a#ktopts=p"},
		"there is no engine redis://, only postgres:": {"init", "redis://h/d", "a"},
		"options stand before the names":              {"init", "postgres://h/d", "a", "-no-log"},
		"status has no option -yes":                   {"-yes", "status", "postgres://h/d"},
		"drop has no option -sid":                     {"drop", "-sid", "5", "postgres://h/d", "-yes"},
		"an argument is missing":                      {"load", "postgres://h/d"},
		"there are too many arguments":                {"status", "postgres://h/d", "a"},
		"say so with -yes":                            {"drop", "postgres://h/d"},
	} {
		r := command("", append([]string{"engine"}, args...)...)
		require.Equal(t, 1, r.exit, args)
		require.Contains(t, r.stderr, why, args)
	}
	for _, args := range [][]string{{"engine", "--help"}, {"engine", "init", "--help"}, {"engine", "init", "postgres://h/d", "--help"}, {"man"}, {"completion", "bash"}} {
		r := command("", args...)
		require.Zero(t, r.exit, args)
		for _, option := range []string{"sid", "no-log", "yes"} {
			require.Contains(t, strings.ReplaceAll(r.stdout, `\-`, "-"), "-"+option, args)
		}
	}
	for _, args := range [][]string{
		{"status", "postgres://kt:secret@127.0.0.1:1/kt"}, {"status", "postgres://kt:secret@127.0.0.1:bad/kt"},
		{"status", "host=127.0.0.1 password=secret dbname=kt"}, {"check", "password=secret://"},
		{"status", "postgresql://kt:a@secret@127.0.0.1:1/kt"}, {"drop", "-yes", "postgres://kt:1/secret@127.0.0.1:1/kt"},
	} {
		r := command("", append([]string{"engine"}, args...)...)
		require.Equal(t, 1, r.exit)
		require.NotContains(t, r.stderr, "secret")
	}
}
