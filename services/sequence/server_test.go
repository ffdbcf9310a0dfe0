package sequence

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/access"
	"gotycoon/access/accesstest"
	"gotycoon/db"
	"gotycoon/internal/browser"
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
	reader, writer := "reader-0123456789", "writer-0123456789"
	lines := []string{"allow reader read", "allow writer write service=sequence"}
	for _, token := range []string{reader, writer} {
		digest, err := access.HashToken([]byte(token))
		require.NoError(t, err)
		lines = append(lines, "token "+token[:6]+" "+digest)
	}
	g := accesstest.Guard(t, lines...)
	sequences := servicetest.NewClient(t, start(t, Options{Options: services.Options{Access: g}}))
	for _, row := range []struct {
		c      *servicetest.Client
		path   string
		reader int
		writer int
	}{
		{sequences, "/fetch", 403, 200},
		{sequences, "/explain?sequence=aR2011o_cWG00002", 200, 403},
	} {
		for _, body := range []string{"", "a body"} { // which is no further request
			r := row.c.Ask("POST", row.path, "", body)
			require.Equal(t, 401, r.StatusCode, row.path)
			require.Equal(t, access.Challenge, r.Header.Get("WWW-Authenticate"))
			require.Contains(t, r.Status, "access denied: this needs a user")
			require.Equal(t, row.reader, row.c.Ask("POST", row.path, reader, body).StatusCode, row.path)
			require.Equal(t, row.writer, row.c.Ask("POST", row.path, writer, body).StatusCode, row.path)
			require.Equal(t, 401, row.c.Ask("POST", row.path, "unknown", body).StatusCode, row.path)
		}
	}
}

// A page of another site takes no numbers and no amounts, also with what it puts into a body.
func TestPagesOfOtherSites(t *testing.T) {
	pages, err := browser.New(nil)
	require.NoError(t, err)
	sequence := start(t, Options{Options: services.Options{Pages: pages}})
	for headers, want := range map[string]int{
		"Host: evil.example\r\nOrigin: http://evil.example":              403,
		"Host: 127.0.0.1\r\nSec-Fetch-Site: cross-site":                  403,
		"Host: evil.example\r\nAccept-Language: ":                        403,
		"Host: 127.0.0.1\r\nUser-Agent: Mozilla/5.0":                     403, // does not say which page
		"Host: db1.internal\r\nUser-Agent: curl/8":                       200,
		"Host: 127.0.0.1\r\nSec-Fetch-Site: none\r\nUser-Agent: Mozilla": 200,
	} {
		for target, addr := range map[string]string{"/fetch": sequence} {
			c := servicetest.NewClient(t, addr)
			smuggled := "GET /fetch HTTP/1.1\r\n\r\n"
			_, err := fmt.Fprintf(c.Socket, "POST %s HTTP/1.1\r\n%s\r\nContent-Length: %d\r\n\r\n%s", target, headers, len(smuggled), smuggled)
			require.NoError(t, err)
			r, err := http.ReadResponse(c.Reader, nil)
			require.NoError(t, err)
			require.Equal(t, want, r.StatusCode, "%s %q", target, headers)
			text, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			if want == 403 {
				require.Contains(t, string(text), "a browser")
				_, err = c.Reader.ReadByte()
				require.Error(t, err, "the connection has ended")
			}
		}
	}
}
