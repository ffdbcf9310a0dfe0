package lock

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEveryMalformedLineIsAnswered(t *testing.T) {
	_, addr := start(t, Options{})
	p := dial(t, addr)
	for _, row := range []struct{ line, want string }{
		{"lock", invalidKeyMissing},
		{"lock   ", invalidKeyMissing},
		{"release", invalidKeyMissing},
		{"status", invalidKeyMissing},
		{"renew", invalidKeyMissing},
		{"cancel", invalidKeyMissing},
		{"lock-fenced", invalidKeyMissing},
		{"lock k abc", invalidNumber},
		{"lock k 1.5", invalidNumber},
		{"lock k 1 -", invalidNumber},
		{"lock k 1 +", invalidNumber},
		{"lock k 1  5", invalidNumber},
		{"lock k 1 1 99999999999", invalidNumber},
		{"lock k 1 1 2147483648", invalidNumber},
		{"lock k 1 1 99999999999999999999999999", invalidNumber},
		{"lock k -2147483649", invalidNumber},
		{"lock k 0 x", invalidNumber},
		{"lock  k", invalidNumber},
		{"lock k -2147483648", invalidMax},
		{"lock k 0 -2 -1", invalidMax},
		{"lock k 1 -2 -1", invalidTimeout},
		{"lock k 1 0 -1", invalidExpires},
		{"renew k x", invalidNumber},
		{"renew k -1", invalidExpires},
		{" ", invalidCommand},
		{"    ", invalidCommand},
		{"\r", invalidCommand},
		{"lock\rk", invalidCommand},
		{"quit2", invalidCommand},
		{"lock  1", "GRANTED 1 0  120"}, // an empty word is a key
		{"release  1", "RELEASED 0 0 "},
		{"status k", "STATUS 0 0 k"},
	} {
		require.Equal(t, row.want, p.call("%s", row.line), "%q", row.line)
	}
}

// A known client stops when the fifth word of any reply is no number.
func TestNewRefusalsAreShort(t *testing.T) {
	for _, text := range []string{invalidKeyMissing, invalidNumber} {
		require.LessOrEqual(t, len(strings.Fields(text)), 4, text)
	}
}

func TestALineThatIsTooLongIsDropped(t *testing.T) {
	_, addr := start(t, Options{})
	p := dial(t, addr)
	key := strings.Repeat("k", maxLine-len("status "))
	require.Equal(t, "STATUS 0 0 "+key, p.call("status %s", key))
	require.Equal(t, "STATUS 0 0 "+key, p.call("status %s\r", key))
	require.Equal(t, invalidCommand, p.call("status %sk", key))
	require.Equal(t, invalidCommand, p.call("status %sk\r", key))
	require.Equal(t, "GRANTED 1 0 a 120", p.call("lock a"))
	for range 2 {
		_, err := io.WriteString(p, strings.Repeat("z", 100_000)) // without an end
		require.NoError(t, err)
	}
	p.send("\nstatus a")
	require.Equal(t, invalidCommand+"\nSTATUS 1 0 a\n", p.lines(2))
}

func TestTheLimitIsThatOfTheHolders(t *testing.T) {
	_, addr := start(t, Options{})
	a, b, c := dial(t, addr), dial(t, addr), dial(t, addr)
	require.Equal(t, "GRANTED 1 0 k 120", a.call("lock k 1"))
	require.Equal(t, invalidMax, a.call("lock k 0"))
	b.send("lock k 5")
	require.Eventually(t, func() bool { return c.call("status k") == "STATUS 1 1 k" }, waitLimit, time.Millisecond)
	require.Equal(t, "GRANTED 1 1 k 120", a.call("lock k 5"))
	require.Equal(t, "GRANTED 2 0 k 120", b.line(), "there is room now")
	require.Equal(t, "RELEASED 1 0 k", a.call("release k"))
	require.Equal(t, "GRANTED 2 0 k 120", c.call("lock k 5 0"))
}

func TestLongTimes(t *testing.T) {
	_, addr := start(t, Options{})
	a, b := dial(t, addr), dial(t, addr)
	for _, expires := range []int{2147483, 2147484, 2147483647} {
		require.Equal(t, fmt.Sprintf("GRANTED 1 0 k %d", expires), a.call("lock k 1 0 %d", expires))
		b.send("lock k 1 %d %d\nstatus k", expires, expires)
		require.Equal(t, "STATUS 1 1 k", b.line())
		require.Equal(t, "RELEASED 0 1 k", a.call("release k"))
		require.Equal(t, fmt.Sprintf("GRANTED 1 0 k %d", expires), b.line())
		require.Equal(t, "RELEASED 0 0 k", b.call("release k"))
	}
}

func TestQuitDropsWhatFollows(t *testing.T) {
	s, addr := start(t, Options{})
	p := dial(t, addr)
	p.send("lock a\nquit\nlock b")
	text, err := io.ReadAll(p.in)
	require.NoError(t, err)
	require.Equal(t, "GRANTED 1 0 a 120\nRELEASED 0 0 a\n", string(text))
	require.Eventually(t, func() bool { return s.Stats().Conns == 0 }, waitLimit, time.Millisecond)
	require.Zero(t, s.Stats().Keys)
}

func TestCommandsBeforeAnEndAreAnswered(t *testing.T) {
	s, addr := start(t, Options{})
	p := dial(t, addr)
	p.send("lock a\nstatus a")
	require.NoError(t, p.Conn.(*net.TCPConn).CloseWrite())
	text, err := io.ReadAll(p.in)
	require.NoError(t, err)
	require.Equal(t, "GRANTED 1 0 a 120\nSTATUS 1 0 a\n", string(text))
	require.Zero(t, s.Stats().Keys)
}

func TestLimits(t *testing.T) {
	t.Parallel()
	s, addr := start(t, Options{MaxTTL: 5500 * time.Millisecond, MaxKeys: 2, MaxWaiters: 1})
	a, b, c := dial(t, addr), dial(t, addr), dial(t, addr)
	require.Equal(t, "GRANTED 1 0 x 5", a.call("lock x"))
	require.Equal(t, "RENEWED 1 0 x 5", a.call("renew x 100"))
	require.Equal(t, "GRANTED 1 0 y 5", a.call("lock y 1 0 7"))
	require.Equal(t, "TOO_MANY_KEYS 0 0 z", a.call("lock z"))
	b.send("lock x 1 -1\nstatus x")
	require.Equal(t, "STATUS 1 1 x", b.line())
	require.Equal(t, "TOO_MANY_WAITERS 1 1 x", c.call("lock x"))
	require.Equal(t, "TIMEOUT 1 1 x", c.call("lock x 1 0"))
	require.EqualValues(t, 2, s.Stats().Refusals)
	require.Equal(t, "GRANTED 1 0 x 5", b.line(), "when it has expired")
	require.Equal(t, "RELEASED 0 0 x", b.call("release x"))
	require.Equal(t, "GRANTED 1 0 z 5", c.call("lock z"))
}

// Holders of a shared lock, and those who wait for it, take memory too.
func TestMemoryOfSharedLocks(t *testing.T) {
	_, addr := start(t, Options{MaxMemory: 1 + 2*requestCost})
	clients := make([]*peer, 4)
	for i := range clients {
		clients[i] = dial(t, addr)
	}
	require.Equal(t, "GRANTED 1 0 x 60", clients[0].call("lock x 3 -1 60"))
	require.Equal(t, "GRANTED 2 0 x 60", clients[1].call("lock x 3 -1 60"))
	require.Equal(t, "GRANTED 3 0 x 60", clients[2].call("lock x 3 -1 60"))
	require.Equal(t, "TOO_MANY_KEYS 3 0 x", clients[3].call("lock x 3 -1 60"))
	require.Equal(t, "TIMEOUT 3 0 x", clients[3].call("lock x 3 0 60"))
	require.Equal(t, "GRANTED 3 0 x 50", clients[2].call("lock x 3 -1 50"))
	require.Equal(t, "RELEASED 2 0 x", clients[1].call("release x"))
	require.Equal(t, "GRANTED 3 0 x 60", clients[3].call("lock x 3 -1 60"))
}

// Long keys count for more than short ones.
func TestTheMemoryOfKeysIsBounded(t *testing.T) {
	_, addr := start(t, Options{MaxMemory: 10})
	p := dial(t, addr)
	require.Equal(t, "GRANTED 1 0 123456 120", p.call("lock 123456"))
	require.Equal(t, "TOO_MANY_KEYS 0 0 12345", p.call("lock 12345"))
	require.Equal(t, "GRANTED 1 0 1234 120", p.call("lock 1234"))
	require.Equal(t, "RELEASED 0 0 123456", p.call("release 123456"))
	require.Equal(t, "TOO_MANY_KEYS 0 0 1234567", p.call("lock 1234567"))
	require.Equal(t, "GRANTED 1 0 12345 120", p.call("lock 12345"))
}

func TestRenewAndCancel(t *testing.T) {
	_, addr := start(t, Options{})
	a, b, c := dial(t, addr), dial(t, addr), dial(t, addr)
	require.Equal(t, "NOT_RENEWED 0 0 k", a.call("renew k"))
	require.Equal(t, "NOT_CANCELLED 0 0 k", a.call("cancel k"))
	require.Equal(t, "NOT_CANCELLED 0 0 k", a.call("cancel k somebody"))
	require.Equal(t, "GRANTED 1 0 k 50", a.call("lock k 1 0 50"))
	require.Equal(t, "RENEWED 1 0 k 50", a.call("renew k"))
	require.Equal(t, "RENEWED 1 0 k 60", a.call("renew k 60"))
	require.Equal(t, "NOT_CANCELLED 1 0 k", a.call("cancel k"), "it is no waiting request")
	b.send("lock k")
	require.Equal(t, "CANCELLED 1 0 k", b.call("cancel k"))
	b.send("lock k")
	require.Equal(t, "NOT_RENEWED 1 1 k", b.call("renew k"))
	require.Equal(t, "CANCELLED 1 0 k", c.call("cancel k %s", b.LocalAddr()))
	require.Equal(t, "TIMEOUT 1 0 k", b.line(), "a word that old clients know")
	b.send("lock k")
	require.Equal(t, "STATUS 1 1 k", b.call("status k"))
	require.Equal(t, "CANCELLED 1 0 k", c.call("cancel k %s", a.LocalAddr()))
	require.Equal(t, "RELEASED 0 1 k\nEXPIRED 1 0 k\n", a.lines(2))
	require.Equal(t, "GRANTED 1 0 k 120", b.line())
}

func TestListOfRequests(t *testing.T) {
	s, addr := start(t, Options{Fences: &fakeFences{bound: 41}})
	a, b := dial(t, addr), dial(t, addr)
	require.Equal(t, "END", a.call("list"))
	require.Equal(t, "GRANTED 1 0 m 30 42", a.call("lock-fenced m 2 0 30"))
	require.Equal(t, "GRANTED 1 0 l 120", a.call("lock l"))
	b.send("lock m\nlock l 1 99\nstatus l")
	require.Equal(t, "STATUS 1 1 l", b.line())
	want := fmt.Sprintf(`HOLDER l %[1]s \d+\.\d\d\d 1[12]\d\.\d\d\d 1 0
WAITER l %[2]s \d+\.\d\d\d [89]\d\.\d\d\d 1
HOLDER m %[1]s \d+\.\d\d\d [23]\d\.\d\d\d 2 42
WAITER m %[2]s \d+\.\d\d\d -1 1
END
`, a.LocalAddr(), b.LocalAddr())
	a.send("list")
	text := a.lines(5)
	require.Regexp(t, `\A`+want+`\z`, text)
	a.send("list l")
	require.Equal(t, text[:strings.Index(text, " ")], strings.Fields(a.lines(3))[0])
	require.Equal(t, "END", a.call("list none"))
	st := s.Stats()
	require.Equal(t, []int{2, 2, 2, 2}, []int{st.Conns, st.Keys, st.Holders, st.Waiters})
	require.Positive(t, st.OldestWait)
	require.EqualValues(t, 2, st.Grants)
}

func TestStatusListsAreSorted(t *testing.T) {
	_, addr := start(t, Options{})
	a, b := dial(t, addr), dial(t, addr)
	var byName strings.Builder
	for i := range 5000 { // far more than is sent at once
		a.send("lock k%04d 2", i)
		fmt.Fprintf(&byName, "STATUS 1 0 k%04d\n", i)
	}
	a.lines(5000)
	b.send("status-by-key")
	require.Equal(t, byName.String(), b.lines(5000))
	require.Equal(t, "GRANTED 2 0 k0777 120", b.call("lock k0777 2"))
	b.send("status-by-grants\nstatus end")
	require.Equal(t, "STATUS 2 0 k0777\nSTATUS 1 0 k0000\n", b.lines(5001)[:34])
}

func TestTokens(t *testing.T) {
	fences := &fakeFences{bound: 99}
	_, addr := start(t, Options{Fences: fences})
	a, b := dial(t, addr), dial(t, addr)
	require.Equal(t, "GRANTED 1 0 k 120", a.call("lock k"), "only on request")
	require.Equal(t, "GRANTED 1 0 k 120 100", a.call("lock-fenced k"))
	require.Equal(t, "GRANTED 1 0 k 9 100", a.call("lock-fenced k 1 0 9"), "the grant has one token")
	require.Equal(t, "RENEWED 1 0 k 9 100", a.call("renew k"))
	require.Equal(t, "GRANTED 1 0 k 120", a.call("lock k"))
	b.send("lock k\nlock-fenced k\nstatus k")
	require.Equal(t, "STATUS 1 1 k", b.line())
	require.Equal(t, "RELEASED 0 1 k", a.call("release k"))
	require.Equal(t, "GRANTED 1 0 k 120 101", b.line())
	require.Equal(t, "RELEASED 0 0 k", b.call("release k"))

	_, addr = start(t, Options{})
	c := dial(t, addr)
	require.Equal(t, "NO_TOKEN 0 0 k", c.call("lock-fenced k"))
	require.Equal(t, "GRANTED 1 0 k 120", c.call("lock k"))
	require.Equal(t, "NO_TOKEN 1 0 k", c.call("lock-fenced k"))
	require.Equal(t, "RELEASED 0 0 k", c.call("release k"), "it was not lost by that")
	_, err := New(Options{Fences: &fakeFences{failed: errors.New("disk")}})
	require.EqualError(t, err, "reserve fencing tokens: disk")
}

func TestNoBodyIsOvertakenInStrictOrder(t *testing.T) {
	_, addr := start(t, Options{StrictOrder: true})
	a, b, c, d := dial(t, addr), dial(t, addr), dial(t, addr), dial(t, addr)
	require.Equal(t, "GRANTED 1 0 k 120", a.call("lock k 3"))
	b.send("lock k 1\nstatus k")
	require.Equal(t, "STATUS 1 1 k", b.line())
	c.send("lock k 3\nstatus k")
	require.Equal(t, "STATUS 1 2 k", c.line())
	require.Equal(t, "TIMEOUT 1 2 k", d.call("lock k 3 0"))
	require.Equal(t, "CANCELLED 1 1 k", b.call("cancel k"))
	require.Equal(t, "GRANTED 2 0 k 120", c.line(), "it was held up by that only")
}

func TestARequestThatWaitsEndsWithTheServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, err := New(Options{})
	require.NoError(t, err)
	s.Start(l)
	a, b := dial(t, l.Addr().String()), dial(t, l.Addr().String())
	require.Equal(t, "GRANTED 1 0 k 120", a.call("lock k"))
	b.send("lock k\nstatus k")
	require.Equal(t, "STATUS 1 1 k", b.line())
	require.NoError(t, s.Close())
	_, err = io.ReadAll(b.in)
	require.NoError(t, err)
	unused, err := New(Options{})
	require.NoError(t, err)
	require.NoError(t, unused.Close())
}

// The time of a lock begins with its grant, not with what the holder before did last.
func TestALockHandedOverByAnEndLastsAsLong(t *testing.T) {
	t.Parallel()
	_, addr := start(t, Options{})
	a, b := dial(t, addr), dial(t, addr)
	require.Equal(t, "GRANTED 1 0 k 120", a.call("lock k"))
	b.send("lock k 1 -1 60")
	<-time.After(1500 * time.Millisecond)
	begun := time.Now()
	a.Close()
	require.Equal(t, "GRANTED 1 0 k 60", b.line())
	var client string
	var held, left float64
	_, err := fmt.Sscanf(b.call("list k"), "HOLDER k %s %f %f 1 0", &client, &held, &left)
	require.NoError(t, err)
	since := time.Since(begun).Seconds() + 0.001 // figures of milliseconds
	require.LessOrEqual(t, held, since, "not 1.5 s more")
	require.GreaterOrEqual(t, left, 60-since)
	require.LessOrEqual(t, left, 60.0)
}

// requireMisled looks for the reply to an HTTP request, and nothing behind it.
func requireMisled(t *testing.T, reply []byte) {
	t.Helper()
	require.Regexp(t, `^HTTP/1\.1 400 Bad Request\r\n(?s:.*)\r\n\r\nthis port speaks the protocol of locks, not HTTP: [^\n]*\n$`, string(reply))
}

// A page can make a browser send its request here, with commands in the body: the request line ends
// the connection.
func TestARequestOfAPageEndsTheConnection(t *testing.T) {
	_, addr := start(t, Options{})
	p := dial(t, addr)
	p.send("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nlock k 1")
	rest, _ := io.ReadAll(p.in)
	requireMisled(t, rest)
	require.Equal(t, "STATUS 0 0 k", dial(t, addr).call("status k"))

	long := dial(t, addr)
	long.send("POST /" + strings.Repeat("x", 20_000) + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nlock k 1")
	rest, _ = io.ReadAll(long.in)
	requireMisled(t, rest) // a page may ask for a path of any length
	require.Equal(t, "STATUS 0 0 k", dial(t, addr).call("status k"))

	secure := dial(t, addr)
	secure.send("\x16\x03\x01\x02\x00\x01\nlock k 1")
	rest, _ = io.ReadAll(secure.in)
	require.Empty(t, string(rest))
	secure = dial(t, addr)
	_, err := secure.Write([]byte("\x16\x03\x01")) // without the end of a line
	require.NoError(t, err)
	rest, _ = io.ReadAll(secure.in)
	require.Empty(t, string(rest), "a handshake of TLS has a name in it that a page's site has chosen")
	require.Equal(t, "STATUS 0 0 k", dial(t, addr).call("status k"))
}
