package pg_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/enginetest"
	"gotycoon/db/engine/pg"
	"gotycoon/db/engine/pg/pgtest"
)

// server is the PostgreSQL of all tests.
var server pgtest.Shared

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("10") // each takes some tenths of a second
	}
	os.Exit(server.Main(m))
}

// setUp sets up an engine in a new database and returns its URL.
func setUp(t testing.TB) string {
	url := server.URL(t)
	initialise(t, url)
	return url
}

func initialise(t testing.TB, url string) {
	made, err := pg.Init(t.Context(), url, pg.Setup{SID: 1, Log: true, Databases: []string{"a", "b"}})
	require.NoError(t, err)
	require.True(t, made)
}

// open opens an engine, which ends with the test unless the test closes it.
func open(t testing.TB, url string, o pg.Options) *pg.Engine {
	e, err := pg.Open(t.Context(), url, o)
	require.NoError(t, err)
	return e
}

func TestEngine(t *testing.T) {
	enginetest.Run(t, enginetest.Place{Open: func(t *testing.T) func(addr string) engine.Engine {
		url := setUp(t)
		return func(addr string) engine.Engine {
			// Longer than what must go on may take: the end of a hold lets it go on too.
			return open(t, url, pg.Options{Addr: addr, Hold: 15 * time.Second})
		}
	}})
}
