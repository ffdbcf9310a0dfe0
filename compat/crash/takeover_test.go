package crash

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	kt "gotycoon/client"
	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
)

// takeovers is the number of kills of the primary in the default test run. After each kill the
// quotas are copied, and the quotas grow with each, so more than mostTakeovers kills would take too
// long.
const (
	takeovers     = 4
	mostTakeovers = 25
)

// takeoverLimit is the quota that is taken from.
const takeoverLimit = 1_000_000

// side is one of two servers that follow each other. Both have all services in one configuration.
type side struct {
	opts                  ktproc.Options
	server                *ktproc.Server
	quota, sequence, lock string // addresses
}

func newSide(t *testing.T, bin string, sid int) *side {
	t.Helper()
	s := &side{opts: ktproc.Options{Bin: bin, Dir: t.TempDir(), DBs: []string{"a.kct"}}}
	s.opts.Args = []string{"-ulog", "ul", "-ulim", "256k", "-rts", "rts", "-sid", strconv.Itoa(sid), "-checkpoint", "1m",
		"-services", "services.kct", "-sequence-server-no", "7", "-quota-limit", strconv.Itoa(takeoverLimit)}
	for option, addr := range map[string]*string{"-quota-port": &s.quota, "-sequence-port": &s.sequence, "-lock-port": &s.lock} {
		port := strconv.Itoa(freeport.Take(t))
		*addr = net.JoinHostPort("127.0.0.1", port)
		s.opts.Args = append(s.opts.Args, option, port)
	}
	return s
}

// start starts the server, as a slave of master unless master is nil.
func (s *side) start(t *testing.T, master *side) {
	t.Helper()
	o := s.opts
	if master != nil {
		o.Args = append(o.Args[:len(o.Args):len(o.Args)], "-mhost", "127.0.0.1", "-mport", strconv.Itoa(master.server.Port))
	}
	s.server = ktproc.Start(t, o)
}

// call calls a procedure and returns its rows.
func (s *side) call(procedure string, rows ...string) (map[string]string, error) {
	c, err := dial(s.server.Addr())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := c.Write(rpc(procedure, rows...)); err != nil {
		return nil, err
	}
	body, err := c.readHTTP(http.StatusOK)
	found := map[string]string{}
	for line := range strings.Lines(body) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		found[name] = value
	}
	return found, err
}

// awaitComplete waits until the slave has everything that its master has.
func (s *side) awaitComplete(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		rows, err := s.call("report")
		return err == nil && rows["repl_state"] == "streaming" && rows["repl_lag_records"] == "0" && rows["serv_primary"] == "false"
	}, 3*time.Minute, 5*time.Millisecond, "the standby has not everything")
}

// left returns the remaining amount of the quota on a server.
func (s *side) left() string {
	c, body, err := ask(nil, s.quota, "/query")
	if err != nil {
		return err.Error()
	}
	c.Close()
	return body
}

// promote ends the following and makes the server the primary.
func (s *side) promote(t *testing.T) {
	t.Helper()
	_, err := s.call("tune_replication")
	require.NoError(t, err)
	_, err = s.call("tune_replication", "primary", "true")
	require.NoError(t, err)
}

// records returns the records of the services' database.
func (s *side) records(t *testing.T) map[string]string {
	t.Helper()
	c := kt.New(s.server.Addr(), kt.Options{})
	defer c.Close()
	all := map[string]string{}
	require.NoError(t, c.DB("65534").Copy(t.Context(), kt.CopyOptions{ // no other request reaches it
		Begin: func(kt.CopyInfo) error { return nil },
		Visit: func(key, value []byte) error {
			all[string(key)] = string(value[5:]) // behind the expiration time
			return nil
		},
	}))
	return all
}

// users are the clients of whatever server is the primary.
type users struct {
	t       *testing.T
	primary atomic.Pointer[side]
	pause   sync.RWMutex // held for reading over a call
	stop    atomic.Bool
	wait    sync.WaitGroup

	granted, numbers, tokens atomic.Int64
	mu                       sync.Mutex
	seen                     map[string]bool // numbers of sequences
}

// ask makes an HTTP call. It uses the connection c if c is a connection to the server at addr.
func ask(c *client, addr, path string) (*client, string, error) {
	var err error
	if c == nil || c.RemoteAddr().String() != addr {
		if c != nil {
			c.Close()
		}
		if c, err = dial(addr); err != nil {
			return nil, "", err
		}
	}
	body := ""
	if _, err = io.WriteString(c, "GET "+path+" HTTP/1.1\r\n\r\n"); err == nil {
		body, err = c.readHTTP(http.StatusOK)
	}
	if err != nil {
		c.Close()
		return nil, "", err
	}
	return c, strings.TrimSpace(body), nil
}

// each calls do again and again until the end, also after errors: every call that was begun is
// answered in the end.
func (u *users) each(do func(c *client, i int) (*client, error)) {
	u.wait.Go(func() {
		var c *client
		var err error
		for i := 0; err != nil || !u.stop.Load(); {
			u.pause.RLock()
			c, err = do(c, i)
			u.pause.RUnlock()
			if err != nil {
				time.Sleep(time.Millisecond) //lint:sleep until there is a primary again
				continue
			}
			i++
		}
		if c != nil {
			c.Close()
		}
	})
}

// take takes units from the quota. Each call has a name of its own, and is repeated until it is
// answered.
func (u *users) take(user int) {
	u.each(func(c *client, i int) (*client, error) {
		c, body, err := ask(c, u.primary.Load().quota, fmt.Sprintf("/apply?amt=1&id=%d-%d", user, i))
		if journal, _, _ := strings.Cut(body, " "); err == nil && journal != "0" {
			u.granted.Add(1)
		}
		return c, err
	})
}

// count fetches numbers, each greater than the one before.
func (u *users) count() {
	last := ""
	u.each(func(c *client, _ int) (*client, error) {
		c, number, err := ask(c, u.primary.Load().sequence, "/fetch")
		if err != nil {
			return c, err
		}
		u.mu.Lock()
		if u.seen[number] {
			u.t.Errorf("%s came twice", number)
		}
		u.seen[number] = true
		u.mu.Unlock()
		if !before(last, number) {
			u.t.Errorf("%s came after %s", number, last)
		}
		last = number
		u.numbers.Add(1)
		return c, nil
	})
}

// before reports whether a number is less than another number, in the order of their alphabet.
func before(a, b string) bool {
	const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return strings.IndexByte(alphabet, a[i]) < strings.IndexByte(alphabet, b[i])
		}
	}
	return len(a) < len(b)
}

// lock takes a lock again and again, each time with a greater token.
func (u *users) lock() {
	last := uint64(0)
	u.wait.Go(func() {
		for !u.stop.Load() {
			u.pause.RLock()
			token := lockOnce(u.primary.Load().lock)
			u.pause.RUnlock()
			if token == 0 {
				time.Sleep(time.Millisecond) //lint:sleep until there is a primary again
				continue
			}
			if token <= last {
				u.t.Errorf("the token %d came after %d", token, last)
			}
			last = token
			u.tokens.Add(1)
		}
	})
}

// lockOnce returns the token of a lock that is given back at once, 0 when there was none.
func lockOnce(addr string) (token uint64) {
	c, err := net.Dial("tcp4", addr)
	if err != nil {
		return 0
	}
	defer c.Close()
	if _, err := io.WriteString(c, "lock-fenced k 1 5 30\nrelease k\n"); err != nil {
		return 0
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) != 6 || words[0] != "GRANTED" {
		return 0
	}
	token, _ = strconv.ParseUint(words[5], 10, 64)
	return token
}

// TestTheStandbyTakesOver kills the primary of the services again and again. Each time the standby
// takes over, and the killed server returns as the standby. Although updates are lost with the
// primary, the quota's amounts must add up on both servers, and no number and no fencing token may
// come twice or descend, although both servers have the same server number.
func TestTheStandbyTakesOver(t *testing.T) {
	bin := ktproc.BuildPlain(t, "ktserver")
	for _, row := range []struct {
		name  string
		quiet bool // the standby has everything when the primary is killed: nothing is lost
	}{{"of a primary that has told everything", true}, {"of a busy primary", false}} {
		t.Run(row.name, func(t *testing.T) {
			seed := number(t, seedEnv, int(time.Now().UnixNano()))
			t.Logf("%s=%d", seedEnv, seed)
			rng := rand.New(rand.NewPCG(uint64(seed), 10))
			primary, standby := newSide(t, bin, 1), newSide(t, bin, 2)
			primary.start(t, nil)
			standby.start(t, primary)
			u := &users{t: t, seen: map[string]bool{}}
			u.primary.Store(primary)
			for i := range 4 {
				u.take(i)
			}
			u.count()
			u.count()
			u.lock()
			for range min(max(number(t, longKills, 0), takeovers), mostTakeovers) {
				time.Sleep(time.Duration(rng.Int64N(int64(500 * time.Millisecond)))) //lint:sleep the moment of the kill is meant to be random
				if row.quiet {
					u.pause.Lock()
				}
				standby.awaitComplete(t)
				if row.quiet {
					want := primary.left()
					require.Eventually(t, func() bool { return standby.left() == want }, time.Minute, time.Millisecond)
				}
				primary.server.Kill()
				standby.promote(t)
				primary, standby = standby, primary
				u.primary.Store(primary)
				if row.quiet {
					u.pause.Unlock()
				}
				standby.start(t, primary)
			}
			u.stop.Store(true)
			u.wait.Wait()
			standby.awaitComplete(t)
			requireWholeQuota(t, u, primary, row.quiet)
			require.Eventually(t, func() bool {
				return maps.Equal(primary.records(t), standby.records(t))
			}, 10*time.Second, 20*time.Millisecond, "both have the same")
			t.Logf("%d units, %d numbers, %d tokens", u.granted.Load(), u.numbers.Load(), u.tokens.Load())
			standby.server.Stop(t)
			primary.server.Stop(t)
			require.FileExists(t, filepath.Join(primary.opts.Dir, "services.kct"))
		})
	}
}

// requireWholeQuota compares the remaining amount with the journals, and with the amounts that the
// users have got.
func requireWholeQuota(t *testing.T, u *users, primary *side, all bool) {
	t.Helper()
	journals, remaining := 0, 0
	for key, value := range primary.records(t) {
		switch {
		case strings.HasPrefix(key, "quota\x00\x00journal\x00"):
			require.Equal(t, "1", value)
			journals++
		case key == "quota\x00\x00state":
			_, err := fmt.Sscan(value, &remaining)
			require.NoError(t, err)
		}
	}
	require.Equal(t, takeoverLimit, remaining+journals)
	granted := int(u.granted.Load())
	if all {
		require.Equal(t, granted, journals)
	}
	require.LessOrEqual(t, journals, granted, "each unit was granted to somebody")
	t.Logf("lost with a primary: %d of %d units", granted-journals, granted)
}
