package load

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func plain() Load {
	return Load{Protocol: "rest", Mix: []Share{{Get, 1}}, Prefix: "p:", Keys: 10, Keyed: "uniform", Least: 3, Most: 3, Bulk: 2, Conns: 1, Length: time.Second}
}

func TestMix(t *testing.T) {
	mix, err := ParseMix("set=0.5, get,increment=2,setbulk=1,getbulk=1")
	require.NoError(t, err)
	require.Equal(t, []Share{{Set, 0.5}, {Get, 1}, {Increment, 2}, {SetBulk, 1}, {GetBulk, 1}}, mix)
	for _, text := range []string{"", "set,set", "put", "set=0", "set=-1", "set=x", "set=1x", "set=NaN", "removebulk", "get=1e99"} {
		_, err := ParseMix(text)
		require.Error(t, err, text)
	}
}

func TestWhatIsWrongWithALoad(t *testing.T) {
	l := plain()
	require.NoError(t, l.Check())
	for want, change := range map[string]func(*Load){
		"no protocol":       func(l *Load) { l.Protocol = "redis" },
		"no distribution":   func(l *Load) { l.Keyed = "some" },
		"1 to 10000 connec": func(l *Load) { l.Conns = 0 },
		"a value must have": func(l *Load) { l.Most = 2 },
		"a bulk must have":  func(l *Load) { l.Bulk = 0 },
		"rate must be":      func(l *Load) { l.Rate = -1 },
		"prefix of keys":    func(l *Load) { l.Prefix = "a b" },
		"has no increments": func(l *Load) { l.Protocol, l.Mix = "binary", []Share{{Increment, 1}} },
		"by their numbers":  func(l *Load) { l.Protocol, l.DB = "binary", "tree" },
		"knows no database": func(l *Load) { l.Protocol, l.DB = "memcached", "1" },
		"no credentials":    func(l *Load) { l.Protocol, l.Header = "memcached", "Authorization: x\r\n" },
	} {
		l := plain()
		change(&l)
		require.ErrorContains(t, l.Check(), want)
	}
}

func TestChoices(t *testing.T) {
	l := plain()
	l.Mix, l.Keys, l.Least, l.Most = []Share{{Set, 1}, {Get, 3}, {SetBulk, 0.001}}, 1000, 5, 9
	for _, keyed := range Distributions() {
		l.Keyed = keyed
		c := newChooser(&l, 1, new(atomic.Uint64), valueText(l.Most))
		count, keys := map[Operation]int{}, map[string]int{}
		var q request
		for range 10_000 {
			c.next(&q)
			count[q.operation]++
			want := 1
			if q.operation == SetBulk {
				want = 2
			}
			if len(q.keys) != want || len(q.value) < 5 || len(q.value) > 9 {
				t.Fatalf("%v of %q with %q", q.operation, q.keys, q.value)
			}
			if want == 2 {
				continue
			}
			keys[string(q.keys[0])]++
		}
		require.InDelta(t, 3, float64(count[Get])/float64(count[Set]), 0.3)
		most := 0
		for key, n := range keys {
			require.True(t, strings.HasPrefix(key, "p:k0000000") && len(key) == len("p:k0000000123"), key)
			most = max(most, n)
		}
		if keyed == "zipf" {
			require.Greater(t, most, 1000)
		} else {
			require.Less(t, most, 50)
		}
	}
	c := newChooser(&l, 1, new(atomic.Uint64), valueText(l.Most))
	var q request
	c.keys(&q, removeBulk, Increment, 998, 2)
	require.Equal(t, "p:n0000000998 p:n0000000999", string(q.keys[0])+" "+string(q.keys[1]))
}

// answering is a server that answers each request over HTTP with what reply returns.
func answering(t *testing.T, reply func(n int) string) func(context.Context) (net.Conn, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for n := 0; ; n++ {
					for line := "x"; line != "\r\n"; {
						if line, err = in.ReadString('\n'); err != nil {
							return
						}
					}
					text := reply(n)
					if text == "" {
						return
					}
					_, _ = io.WriteString(c, text)
				}
			}()
		}
	}()
	return func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}
}

const ok = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc"

// A server that stands still for 200 ms makes the requests late that were due meanwhile, and all of
// them are counted so, though one connection could send only one.
func TestWaitsCountFromWhenARequestWasDue(t *testing.T) {
	const stall = 200 * time.Millisecond
	l := plain()
	l.Rate, l.Length = 1000, stall
	target := Target{Load: l, Dial: answering(t, func(n int) string {
		if n == 0 {
			<-time.After(stall)
		}
		return ok
	})}
	var r Result
	require.NoError(t, target.Run(t.Context(), &r))
	waits := &r.Tally(Get).Waits
	require.EqualValues(t, 200, waits.Total())
	require.GreaterOrEqual(t, waits.Above(stall/2), uint64(90))
	require.EqualValues(t, 200, r.Count())
}

func TestRefusalsAndMissingRecordsAreCounted(t *testing.T) {
	l := plain()
	l.Rate, l.Length = 1000, 9*time.Millisecond
	target := Target{Load: l, Dial: answering(t, func(n int) string {
		return []string{ok, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 503 Busy\r\nContent-Length: 5\r\n\r\nlater"}[n%3]
	})}
	var r Result
	require.NoError(t, target.Run(t.Context(), &r))
	all := r.All()
	require.EqualValues(t, 9, all.Waits.Total())
	require.EqualValues(t, 3, all.Missing)
	require.EqualValues(t, 3, all.Refused)
	require.EqualError(t, all.Why, `the server answers "HTTP/1.1 503 Busy\r\n: later"`)
}

func TestARunEndsWhenAConnectionBreaks(t *testing.T) {
	l := plain()
	l.Conns, l.Length = 4, time.Hour
	var requests atomic.Int64
	target := Target{Load: l, Dial: answering(t, func(int) string {
		if requests.Add(1) > 100 {
			return ""
		}
		return ok
	})}
	require.Error(t, target.Run(t.Context(), new(Result)))
}

func TestARunEndsWithItsContext(t *testing.T) {
	l := plain()
	l.Length = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	target := Target{Load: l, Dial: answering(t, func(n int) string {
		if n == 20 {
			cancel()
			<-ctx.Done()
		}
		return ok
	})}
	var r Result
	require.NoError(t, target.Run(ctx, &r))
	require.GreaterOrEqual(t, r.Count(), uint64(20))
}

func TestItemsOfMemcached(t *testing.T) {
	for reply, want := range map[string]int64{"STAT pid 1\r\nSTAT curr_items 12\r\nEND\r\n": 12, "END\r\n": -1, "": -1, "STAT curr_items x\r\nEND\r\n": -1} {
		n, err := MemcachedItems(struct {
			io.Reader
			io.Writer
		}{strings.NewReader(reply), io.Discard})
		require.Equal(t, want < 0, err != nil, reply)
		require.Equal(t, max(want, 0), n)
	}
}
