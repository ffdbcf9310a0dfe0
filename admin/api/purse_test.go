package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/admin/api"
	"gotycoon/db/record"
)

// account is memory of so many bytes.
type account struct {
	budget int64
	held   atomic.Int64
	most   atomic.Int64
}

func (a *account) Reserve(n int64, _ bool) bool {
	held := a.held.Add(n)
	if held > a.budget {
		a.held.Add(-n)
		return false
	}
	a.most.Store(max(a.most.Load(), held))
	return true
}

func (a *account) Release(n int64) { a.held.Add(-n) }

func (a *account) empty(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return a.held.Load() == 0 }, patience, time.Millisecond, "what was held is given back")
}

// Values that are shown, bodies and answers are taken from the account of memory, and given back.
func TestMemoryOfRequests(t *testing.T) {
	memory := &account{budget: 8 << 20}
	s := serve(t, api.Options{Memory: memory}, nil)
	require.NoError(t, s.c.DB(0).Set(nil, []byte("huge"), make([]byte, 9<<20), record.Never))
	require.NoError(t, s.c.DB(0).Set(nil, []byte("large"), make([]byte, 3<<20), record.Never))
	store := func(size int) string {
		return fmt.Sprintf(`{"key":%q,"value":%q}`, b64("new"), b64(strings.Repeat("x", size)))
	}
	for name, row := range map[string]struct {
		method, path, body string
		status             int
		least, most        int64
	}{
		"a value":                {http.MethodGet, "databases/0/value?key=" + query("large"), "", 200, 3 << 20, 4 << 20},
		"a value that is shown":  {http.MethodGet, "databases/0/record?key=" + query("large"), "", 200, 5 << 20, 7 << 20},
		"too large a value":      {http.MethodGet, "databases/0/value?key=" + query("huge"), "", 503, 0, 0},
		"not to be shown either": {http.MethodGet, "databases/0/record?key=" + query("huge"), "", 503, 0, 0},
		"a body":                 {http.MethodPost, "databases/0/record", store(1 << 20), 200, 4 << 20, 7 << 20},
		"a body without room":    {http.MethodPost, "databases/1/record", store(6 << 20), 503, 1, 8 << 20},
		"too large a body":       {http.MethodPost, "databases/1/record", store(20 << 20), 413, 0, 0},
		"an answer":              {http.MethodGet, "databases", "", 200, 100, 8000},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			memory.most.Store(0)
			status, answer := s.ask(row.method, row.path, row.body, api.Header, "1")
			require.Equal(t, row.status, status, "%.200s", answer)
			memory.empty(t)
			require.GreaterOrEqual(t, memory.most.Load(), row.least)
			require.LessOrEqual(t, memory.most.Load(), row.most)
		})
	}
}

// endless is a body whose length nobody has announced.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestABodyWithoutALength(t *testing.T) {
	s := serve(t, api.Options{}, nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.addr+"/api/databases/0/record", io.LimitReader(endless{}, 30<<20))
	require.NoError(t, err)
	r.Header.Set(api.Header, "1")
	w, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer w.Body.Close()
	require.Equal(t, http.StatusRequestEntityTooLarge, w.StatusCode)
}

// A value that a client does not take is held, so that many such clients cannot use up the memory.
func TestAClientThatDoesNotRead(t *testing.T) {
	memory := &account{budget: 100 << 20}
	s := serve(t, api.Options{Memory: memory}, nil)
	require.NoError(t, s.c.DB(0).Set(nil, []byte("huge"), make([]byte, 60<<20), record.Never))
	c, err := net.Dial("tcp", s.addr)
	require.NoError(t, err)
	defer c.Close()
	_, err = fmt.Fprintf(c, "GET /api/databases/0/value?key=%s HTTP/1.1\r\nHost: %s\r\n\r\n", query("huge"), s.addr)
	require.NoError(t, err)
	line, err := bufio.NewReaderSize(c, 16).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "200")
	require.GreaterOrEqual(t, memory.held.Load(), int64(60<<20))
	status, _ := s.ask(http.MethodGet, "databases/0/value?key="+query("huge"), "")
	require.Equal(t, http.StatusServiceUnavailable, status, "there is no memory for two of them")
	require.NoError(t, c.Close())
	memory.empty(t)
}
