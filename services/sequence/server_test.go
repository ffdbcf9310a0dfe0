package sequence

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/services"
	"gotycoon/services/internal/servicetest"
)

func start(t *testing.T, o Options) (addr string) {
	t.Helper()
	if o.DB == nil {
		o.DB = servicetest.OpenDB(t, t.TempDir())
	}
	s, err := New(o)
	require.NoError(t, err)
	return servicetest.Start(t, s)
}

func TestSequenceConversations(t *testing.T) {
	cases := servicetest.ReadCases[servicetest.Case](t, "sequence.jsonl")
	addr := start(t, Options{Reserve: 2, ServerNo: 1, Location: time.UTC})
	played := 0
	for _, c := range cases {
		if slices.Contains(c.Requires, "copy-bugs") {
			continue
		}
		at := addr
		if slices.Contains(c.Requires, "fresh") {
			at = start(t, Options{Reserve: 2, ServerNo: 1, Location: time.UTC})
		}
		t.Run(c.Name, func(t *testing.T) { c.Replay(t, at) })
		played++
	}
	require.Equal(t, 10, played)
}

// A connection that had a large block of numbers gives its memory back.
func TestIdleConnectionsKeepNoBlocks(t *testing.T) {
	addr := start(t, Options{})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range 30 {
		c := servicetest.NewClient(t, addr)
		_, body := c.Get(fmt.Sprintf("/fetch?count=%d", MaxCount))
		require.Len(t, body, MaxCount*(numberSize+1))
	}
	servicetest.WaitFor(t, "the blocks to go", func() bool { return heap() < before+8<<20 })
}

func TestServersRefuseWhatTheyCannotKeep(t *testing.T) {
	memory, err := db.Open([]string{":"}, db.Options{})
	require.NoError(t, err)
	defer memory.Close()
	_, err = New(Options{DB: memory.DB(0)})
	require.ErrorContains(t, err, "need a database file")
	file := servicetest.OpenDB(t, t.TempDir())
	_, err = New(Options{DB: file, ServerNo: 4096})
	require.ErrorContains(t, err, "0 to 4095")
	_, err = New(Options{DB: file, Reserve: -1})
	require.ErrorContains(t, err, "0 to 63")
}

func TestSequencesAreListed(t *testing.T) {
	d := servicetest.OpenDB(t, t.TempDir())
	s, err := New(Options{DB: d, ServerNo: 7})
	require.NoError(t, err)
	l := servicetest.Listen(t)
	s.Start(l)
	c := servicetest.NewClient(t, l.Addr().String())
	for _, path := range []string{"/fetch", "/fetch?name=b", "/fetch?name=a"} {
		status, _ := c.Get(path)
		require.Equal(t, 200, status)
	}
	all, err := s.List(10)
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.Equal(t, []string{"", "a", "b"}, []string{all[0].Name, all[1].Name, all[2].Name})
	require.WithinDuration(t, time.Now(), all[1].Bound, time.Minute)
	require.NoError(t, s.Close())
}

func TestRights(t *testing.T) {
	servicetest.CheckRights(t, "sequence", with(t),
		servicetest.Right{Path: "/fetch", Reader: 403, Writer: 200},
		servicetest.Right{Path: "/explain?sequence=aR2011o_cWG00002", Reader: 200, Writer: 403},
	)
}

// A page of another site takes no numbers and no amounts, also with what it puts into a body.
func TestPagesOfOtherSites(t *testing.T) { servicetest.CheckPages(t, "/fetch", with(t)) }

// with returns a function that starts a server with the options of all services.
func with(t *testing.T) func(services.Options) string {
	return func(o services.Options) string { return start(t, Options{Options: o}) }
}
