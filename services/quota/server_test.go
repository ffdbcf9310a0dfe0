package quota

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
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

func TestQuotaConversations(t *testing.T) {
	played := 0
	for _, c := range servicetest.ReadCases[servicetest.Case](t, "quota.jsonl") {
		if slices.Contains(c.Requires, "copy-bugs") {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			export := filepath.Join(t.TempDir(), "journals")
			c.Replay(t, start(t, Options{Limit: 1000, Export: export}))
			if c.ExportAfter != nil {
				require.Eventually(t, func() bool {
					text, err := os.ReadFile(export)
					return err == nil && string(text) == *c.ExportAfter
				}, 10*time.Second, time.Millisecond)
			}
		})
		played++
	}
	require.Equal(t, 8, played)
}

func TestPipelinedAndSplitRequestsAreAnsweredInOrder(t *testing.T) {
	c := servicetest.NewClient(t, start(t, Options{Limit: 100}))
	for _, piece := range []string{
		"GET /apply?amt=1 HTTP/1.1\r\n\r\nGET /apply?amt=2 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /que",
		"ry HTTP/1.1\r", "\n", "\r", "\nPOST /query HTTP/1.1\r\nContent-Length: 2\r\n\r\nx", "yGET /query HTTP/1.1\n\n",
	} {
		_, err := io.WriteString(c.Socket, piece)
		require.NoError(t, err)
	}
	for _, body := range []string{"1 99\n", "2 97\n", "97\n", "97\n", "97\n"} {
		status, got := servicetest.ReadReply(t, c.Reader)
		require.Equal(t, 200, status)
		require.Equal(t, body, got)
	}
}

func TestMalformedRequestsEndTheConnection(t *testing.T) {
	addr := start(t, Options{})
	for _, text := range []string{
		"GET /query HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 0\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length:\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length:\r\n 5\r\n\r\n",
		"GET /query HTTP/1.1\r\nX: y\r\n Content-Length: 5\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length : 5\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length: \v5\r\n\r\n",
		"GET /query HTTP/1.1\r\nX: y\rContent-Length: 5\r\n\r\n",
		"GET /query HTTP/1.1\r\nX: y\x00\r\n\r\n",
		"GET /query HTTP/1.1\r\n: y\r\n\r\n",
		"GET /query HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
		"GET /query HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET /query HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET  /query HTTP/1.1\r\n\r\n",
		"GET /query HTTP/1.1\r\n" + string(make([]byte, 64<<10)),
		"\x00\xff\n\n",
		"GET /increase?amt=1&name=a\x00id HTTP/1.1\r\n\r\n",
	} {
		socket := servicetest.Dial(t, addr)
		_, err := io.WriteString(socket, text)
		require.NoError(t, err)
		one := make([]byte, 1)
		n, err := socket.Read(one)
		require.Zero(t, n, "%.40q", text)
		require.Error(t, err)
	}
}

func TestServersRefuseWhatTheyCannotKeep(t *testing.T) {
	memory, err := db.Open([]string{":"}, db.Options{})
	require.NoError(t, err)
	defer memory.Close()
	_, err = New(Options{DB: memory.DB(0)})
	require.ErrorContains(t, err, "need a database file")
	file := servicetest.OpenDB(t, t.TempDir())
	_, err = New(Options{DB: file, Limit: -1})
	require.ErrorContains(t, err, "negative")
	_, err = New(Options{DB: file, Export: filepath.Join(t.TempDir(), "no", "dir")})
	require.ErrorContains(t, err, "export file")
}

func TestQuotasAreListed(t *testing.T) {
	d := servicetest.OpenDB(t, t.TempDir())
	first, err := New(Options{DB: d, Limit: 100})
	require.NoError(t, err)
	all, err := first.List(10)
	require.NoError(t, err)
	require.Equal(t, []Quota{{Remaining: 100, Open: true}}, all)
	l := servicetest.Listen(t)
	first.Start(l)
	c := servicetest.NewClient(t, l.Addr().String())
	for i := range 5 {
		c.Is(fmt.Sprintf("/increase?amt=10&name=n%d", i), "10")
		for j := range 3 {
			c.Is(fmt.Sprintf("/apply?amt=1&name=n%d&id=x%d", i, j), fmt.Sprintf("%d %d", j+1, 9-j))
		}
	}
	c.Is("/empty?name=n4", "0")
	require.NoError(t, first.Close())

	second, err := New(Options{DB: d, Limit: 100}) // which has not been asked for any of them
	require.NoError(t, err)
	defer func() { require.NoError(t, second.Close()) }()
	all, err = second.List(10)
	require.NoError(t, err)
	require.Equal(t, []Quota{
		{"", 100, 0, true}, {"n0", 7, 3, true}, {"n1", 7, 3, true}, {"n2", 7, 3, true}, {"n3", 7, 3, true}, {"n4", 0, 3, false},
	}, all)
	all, err = second.List(2)
	require.NoError(t, err)
	require.Len(t, all, 3, "the one without a name is there too")
}

func TestRights(t *testing.T) {
	servicetest.CheckRights(t, "quota", with(t),
		servicetest.Right{Path: "/query", Reader: 200, Writer: 403},
		servicetest.Right{Path: "/apply?amt=1", Reader: 403, Writer: 200},
		servicetest.Right{Path: "/increase?amt=1", Reader: 403, Writer: 200},
		servicetest.Right{Path: "/nonsense", Reader: 403, Writer: 404},
	)
}

// A page of another site takes no numbers and no amounts, also with what it puts into a body.
func TestPagesOfOtherSites(t *testing.T) { servicetest.CheckPages(t, "/apply?amt=1", with(t)) }

// with returns a function that starts a server with the options of all services.
func with(t *testing.T) func(services.Options) string {
	return func(o services.Options) string { return start(t, Options{Limit: 100, Options: o}) }
}

func FuzzAmount(f *testing.F) {
	for _, seed := range []string{"12", " -5x", "+", "99999999999999999999"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) { atoll(text) })
}
