package replsql_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"gotycoon/internal/version"
	"gotycoon/tools/replsql"
)

// cluster is PostgreSQL for the tests of this package, nil where it is not installed.
var cluster *postgresCluster

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	c, err := startPostgres()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cluster = c
	code := m.Run()
	if err := cluster.remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// target is a new database.
type target struct {
	name     string // as ktreplsql is told
	postgres bool
}

// eachTarget runs a test with every kind of database.
func eachTarget(t *testing.T, test func(*testing.T, target)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, target{name: "sqlite:" + filepath.Join(t.TempDir(), "a table?.db")})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		if cluster == nil {
			const missing = "PostgreSQL is not installed: no initdb in PATH or below /usr/lib/postgresql"
			if os.Getenv("GOTYCOON_CI") != "" { // as package gotycoon/internal/needs, which is in another module
				t.Fatal(missing)
			}
			t.Skip(missing)
		}
		test(t, target{name: cluster.create(t), postgres: true})
	})
}

// query returns the rows of a statement, each as text with blanks between the columns.
func (g target) query(t *testing.T, statement string) []string {
	t.Helper()
	out, err := g.tryQuery(t.Context(), statement)
	require.NoError(t, err)
	return out
}

func (g target) tryQuery(ctx context.Context, statement string) (out []string, err error) {
	if g.postgres {
		conn, err := pgx.Connect(ctx, g.name)
		if err != nil {
			return nil, err
		}
		defer conn.Close(ctx)
		rows, err := conn.Query(ctx, statement)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
			values, err := row.Values()
			return text(values), err
		})
	}
	path := (strings.ReplaceAll(strings.TrimPrefix(g.name, "sqlite:"), "?", "%3F"))
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(30000)")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		values := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		out = append(out, text(values))
	}
	return out, rows.Err()
}

func text(values []any) string {
	var columns []string
	for _, v := range values {
		if b, ok := v.([]byte); ok {
			v = string(b)
		}
		columns = append(columns, fmt.Sprint(v))
	}
	return strings.Join(columns, " ")
}

// run runs ktreplsql in this process.
func run(t *testing.T, stdin string, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	exit = replsql.Main(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return exit, out.String(), errs.String()
}

// The version needs no database.
func TestVersion(t *testing.T) {
	for _, word := range []string{"version", "--version", "-version"} {
		var out, errs bytes.Buffer
		require.Zero(t, replsql.Main(t.Context(), []string{word}, strings.NewReader(""), &out, &errs))
		require.Equal(t, version.Current().String()+"\n", out.String())
		require.Empty(t, errs.String())
	}
}
