package quota

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
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
	reader, writer := "reader-0123456789", "writer-0123456789"
	lines := []string{"allow reader read", "allow writer write service=quota"}
	for _, token := range []string{reader, writer} {
		digest, err := access.HashToken([]byte(token))
		require.NoError(t, err)
		lines = append(lines, "token "+token[:6]+" "+digest)
	}
	g := accesstest.Guard(t, lines...)
	quotas := servicetest.NewClient(t, start(t, Options{Options: services.Options{Access: g}, Limit: 100}))
	for _, row := range []struct {
		c      *servicetest.Client
		path   string
		reader int
		writer int
	}{
		{quotas, "/query", 200, 403},
		{quotas, "/apply?amt=1", 403, 200},
		{quotas, "/increase?amt=1", 403, 200},
		{quotas, "/nonsense", 403, 404},
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
	quota := start(t, Options{Limit: 100, Options: services.Options{Pages: pages}})
	for headers, want := range map[string]int{
		"Host: evil.example\r\nOrigin: http://evil.example":              403,
		"Host: 127.0.0.1\r\nSec-Fetch-Site: cross-site":                  403,
		"Host: evil.example\r\nAccept-Language: ":                        403,
		"Host: 127.0.0.1\r\nUser-Agent: Mozilla/5.0":                     403, // does not say which page
		"Host: db1.internal\r\nUser-Agent: curl/8":                       200,
		"Host: 127.0.0.1\r\nSec-Fetch-Site: none\r\nUser-Agent: Mozilla": 200,
	} {
		for target, addr := range map[string]string{"/apply?amt=1": quota} {
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

func FuzzAmount(f *testing.F) {
	for _, seed := range []string{"12", " -5x", "+", "99999999999999999999"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) { atoll(text) })
}
