package remote_test

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/db"
	"gotycoon/services/quota"
	"gotycoon/services/sequence"
)

// coconuts are a sequence server and a quota server for a test.
type coconuts struct {
	t               *testing.T
	sequence, quota string // ports
}

func startCoconuts(t *testing.T) *coconuts {
	t.Helper()
	catalog, err := db.Open([]string{filepath.Join(t.TempDir(), "services.kct")}, db.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, catalog.Close()) })
	sequences, err := sequence.New(sequence.Options{DB: catalog.DB(0), Location: time.UTC})
	require.NoError(t, err)
	quotas, err := quota.New(quota.Options{DB: catalog.DB(0), Limit: 100})
	require.NoError(t, err)
	c := &coconuts{t: t}
	c.sequence = c.start(sequences)
	c.quota = c.start(quotas)
	return c
}

func (c *coconuts) start(s interface {
	Start(l net.Listener)
	Close() error
}) (port string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(c.t, err)
	s.Start(l)
	c.t.Cleanup(func() { require.NoError(c.t, s.Close()) })
	_, port, err = net.SplitHostPort(l.Addr().String())
	require.NoError(c.t, err)
	return port
}

func (c *coconuts) seq(args ...string) result {
	c.t.Helper()
	return command(c.t, "", append([]string{"seq", "-host", "127.0.0.1", "-port", c.sequence}, args...)...)
}

func (c *coconuts) calls(args ...string) result {
	c.t.Helper()
	return command(c.t, "", append([]string{"quota", "-host", "127.0.0.1", "-port", c.quota}, args...)...)
}

func TestSequenceNumbers(t *testing.T) {
	c := startCoconuts(t)
	require.Regexp(t, `\A(aR[0-9a-zA-Z_-]{14}\n){3}\z`, c.seq("-count", "3").stdout)
	require.Regexp(t, `\A\{"number":"aR[^"]{14}"\}\n\z`, c.seq("-name", "orders", "-json").stdout)
	require.Equal(t, result{stdout: "reserve: 2  server_no: 1  secondstamp: 1492962986 (2017-04-23 15:56:26)  serial_no: 2\n"},
		c.seq("-explain", "aR2011o_cWG00002"))
	many := strings.Fields(c.seq("-count", "250001").stdout)
	require.Len(t, many, 250_001, "in several blocks")
	for _, wrong := range []struct {
		args []string
		says string
	}{
		{[]string{"-count", "0"}, "-count: must be at least 1"},
		{[]string{"-count", "-1"}, "-count: must be at least 1"},
		{[]string{"-explain", "xx"}, `"xx" is no sequence number`},
		{[]string{"-explain"}, "belong together"},
		{[]string{"aR2011o_cWG00002"}, "belong together"},
		{[]string{"-name", strings.Repeat("n", 256)}, "255 bytes"},
	} {
		r := c.seq(wrong.args...)
		require.Equal(t, 1, r.exit, wrong.args)
		require.Contains(t, r.stderr, wrong.says, wrong.args)
		require.Empty(t, r.stdout, wrong.args)
	}
	c.sequence = c.quota
	require.Contains(t, c.seq().stderr, "404 Not Found: there is no quota of that name, or another service has the port")
}

func TestQuotaCalls(t *testing.T) {
	c := startCoconuts(t)
	for _, call := range []struct {
		args   string
		stdout string
	}{
		{"query", "100\n"},
		{"apply 30", "1 70\n"},
		{"-id a apply 5", "2 65\n"},
		{"-id a apply 5", "2 65\n"},
		{"cancel 1", "3 95\n"},
		{"-json apply 1", `{"journal":4,"remaining":94}` + "\n"},
		{"-json query", `{"remaining":94}` + "\n"},
		{"increase 6", "100\n"},
		{"decrease 1", "99\n"},
		{"-name n increase 7", "7\n"},
		{"-name n apply 7", "1 0\n"},
		{"empty", "0\n"},
	} {
		require.Equal(t, result{stdout: call.stdout}, c.calls(strings.Fields(call.args)...), call.args)
	}
}

func TestQuotaCallsThatAreRefused(t *testing.T) {
	c := startCoconuts(t)
	require.Zero(t, c.calls("-id", "a", "apply", "1").exit)
	for args, says := range map[string]string{
		"apply 500":       "ktremotemgr: quota apply: refused: what remains is 99\n",
		"cancel 7":        "there is no journal 7 of an apply, or it has been cancelled",
		"cancel 0":        "refuses the arguments",
		"apply -1":        "refuses the arguments",
		"-id a apply 2":   "an id of another call",
		"-name x query":   "there is no quota of that name",
		"-name x apply 1": "there is no quota of that name",
		"apply":           "apply needs a number",
		"apply x":         "x is no number",
		"query 1":         "query has no argument",
		"take 1":          "take: unknown call",
		"":                "an argument is missing",
	} {
		r := c.calls(strings.Fields(args)...)
		require.Equal(t, 1, r.exit, args)
		require.Contains(t, r.stderr, says, args)
		require.Empty(t, r.stdout, args)
	}
	server := client.NewQuota(net.JoinHostPort("127.0.0.1", c.quota), "", client.Options{})
	remaining, err := server.Query(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 99, remaining)
}
