package compat

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
	"gotycoon/internal/needs"
)

// startModern starts a server with the option for today's memcached clients, and returns their
// address.
func startModern(t *testing.T, args ...string) (s *ktproc.Server, addr string) {
	t.Helper()
	port := freeport.Take(t)
	args = append(args, "-memcache-port", strconv.Itoa(port))
	s = ktproc.Start(t, ktproc.Options{Bin: ktproc.BuildPlain(t, "ktserver"), Dir: t.TempDir(), Args: args, DBs: []string{"%"}})
	addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	awaitListening(t, addr)
	return s, addr
}

func TestGoClient(t *testing.T) {
	t.Parallel()
	s, addr := startModern(t)
	c := memcache.New(addr)
	defer c.Close()
	require.NoError(t, c.Ping())
	require.NoError(t, c.Set(&memcache.Item{Key: "a", Value: []byte("x"), Flags: 7}))
	it, err := c.Get("a")
	require.NoError(t, err)
	require.Equal(t, "x", string(it.Value))
	require.EqualValues(t, 7, it.Flags)

	require.ErrorIs(t, c.Add(&memcache.Item{Key: "a"}), memcache.ErrNotStored)
	require.NoError(t, c.Append(&memcache.Item{Key: "a", Value: []byte("y")}))
	require.NoError(t, c.Prepend(&memcache.Item{Key: "a", Value: []byte("w")}))
	require.ErrorIs(t, c.Replace(&memcache.Item{Key: "z"}), memcache.ErrNotStored)
	require.NoError(t, c.Touch("a", 100))
	require.ErrorIs(t, c.Touch("z", 100), memcache.ErrCacheMiss)
	it, err = c.GetAndTouch("a", 100)
	require.NoError(t, err)
	require.Equal(t, "wxy", string(it.Value))

	it, err = c.Get("a") // the other does not ask for the version
	require.NoError(t, err)
	it.Value = []byte("new")
	require.NoError(t, c.CompareAndSwap(it))
	require.ErrorIs(t, c.CompareAndSwap(it), memcache.ErrCASConflict)
	it, err = c.Get("a")
	require.NoError(t, err)
	status, _, err := callRPC(s.Addr(), "set", map[string]string{"key": "a", "value": "over HTTP\x00\x00\x00\x00"})
	require.NoError(t, err)
	require.Equal(t, 200, status)
	require.ErrorIs(t, c.CompareAndSwap(it), memcache.ErrCASConflict)

	require.NoError(t, c.Set(&memcache.Item{Key: "n", Value: []byte("5")}))
	n, err := c.Increment("n", 3)
	require.NoError(t, err)
	require.EqualValues(t, 8, n)
	n, err = c.Decrement("n", 10)
	require.NoError(t, err)
	require.Zero(t, n)

	keys := make([]string, 2000)
	for i := range keys {
		keys[i] = fmt.Sprintf("key-%04d", i)
		require.NoError(t, c.Set(&memcache.Item{Key: keys[i], Value: []byte(keys[i])}))
	}
	all, err := c.GetMulti(keys)
	require.NoError(t, err)
	require.Len(t, all, len(keys))
	require.NoError(t, c.Delete("a"))
	require.ErrorIs(t, c.Delete("a"), memcache.ErrCacheMiss)
	require.NoError(t, c.FlushAll())
	_, err = c.Get("n")
	require.ErrorIs(t, err, memcache.ErrCacheMiss)
}

// libmemcached returns the path of one of its programs. Some distributions put a "c" in front of the
// names.
func libmemcached(t *testing.T, name string) string {
	t.Helper()
	return needs.Program(t, "libmemcached-tools", "memc"+name, "mem"+name)
}

func TestLibmemcachedTools(t *testing.T) {
	t.Parallel()
	cp, cat := libmemcached(t, "cp"), libmemcached(t, "cat")
	rm, stat := libmemcached(t, "rm"), libmemcached(t, "stat")
	ping, exist := libmemcached(t, "ping"), libmemcached(t, "exist")
	_, addr := startModern(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "greeting")
	require.NoError(t, os.WriteFile(file, []byte("hello world"), 0o600))
	run := func(bin string, args ...string) (string, error) {
		out, err := exec.Command(bin, append([]string{"--servers=" + addr}, args...)...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	out, err := run(ping)
	require.NoError(t, err, out)
	for _, protocol := range [][]string{nil, {"--binary"}} {
		for _, row := range []struct {
			bin, arg, want string
		}{
			{cp, file, ""}, {cat, "greeting", "hello world"}, {exist, "greeting", ""}, {rm, "greeting", ""},
		} {
			out, err := run(row.bin, append(append([]string{}, protocol...), row.arg)...)
			require.NoError(t, err, "%s %v: %s", row.bin, protocol, out)
			require.Equal(t, row.want, out, row.bin)
		}
		_, err := run(exist, append(append([]string{}, protocol...), "greeting")...)
		require.Error(t, err)
		out, err := run(stat, protocol...)
		require.NoError(t, err, out)
		require.Contains(t, out, "cmd_get")
	}
}

// TestMemcapable runs libmemcached's own check of servers, in both protocols.
func TestMemcapable(t *testing.T) {
	t.Parallel()
	bin := libmemcached(t, "capable")
	_, addr := startModern(t)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	out, err := exec.Command(bin, "-h", "127.0.0.1", "-p", port).CombinedOutput()
	require.NoError(t, err, string(out))
	require.NotContains(t, string(out), "FAIL")
}

const pylibmcProgram = `
import sys
import pylibmc
for binary in (False, True):
    m = pylibmc.Client([sys.argv[1]], binary=binary, behaviors={'cas': True, 'tcp_nodelay': True})
    m.flush_all()
    m['a'] = {'x': [1, 2]}
    assert m['a'] == {'x': [1, 2]}
    m.set_multi({'k%d' % i: 'v%d' % i for i in range(2000)})
    assert len(m.get_multi(['k%d' % i for i in range(2000)])) == 2000
    v, c = m.gets('a')
    assert m.cas('a', 3, c) and not m.cas('a', 4, c) and m['a'] == 3
    m.set('s', 'x')
    assert m.append('s', 'y') and m.prepend('s', 'w') and m['s'] == 'wxy'
    m.set('n', 7)
    assert m.incr('n', 3) == 10 and m.decr('n', 20) == 0
    assert m.touch('s', 100) and m.delete('s') and not m.delete('s')
    assert m.add('q', '1') and not m.add('q', '2') and m.replace('q', '3')
    assert len(m.get_stats()[0][1]) > 20
    m.disconnect_all()
print('fine')
`

const pythonMemcacheProgram = `
import sys
import memcache
m = memcache.Client([sys.argv[1]], cache_cas=True)
m.flush_all()
assert m.set('a', {'x': 1}) and m.get('a') == {'x': 1}
assert m.gets('a') == {'x': 1} and m.cas('a', 2) and m.get('a') == 2
assert m.set('s', 'x') and m.append('s', 'y') and m.prepend('s', 'w') and m.get('s') == 'wxy'
assert m.touch('s', 10) and m.set('n', 5) and m.incr('n') == 6 and m.decr('n', 2) == 4
assert len(m.get_multi(['a', 's', 'n', 'none'])) == 3
assert m.set_multi({'k%d' % i: i for i in range(500)}) == [] and m.get('k499') == 499
assert m.delete('a') and m.get('a') is None
assert len(m.get_stats()[0][1]) > 20
print('fine')
`

func TestPythonClients(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]string{"pylibmc": pylibmcProgram, "memcache": pythonMemcacheProgram} {
		t.Run(name, func(t *testing.T) {
			python := pythonWith(t, name)
			_, addr := startModern(t)
			out, err := exec.Command(python, "-c", program, addr).CombinedOutput()
			require.NoError(t, err, string(out))
			require.Equal(t, "fine", string(bytes.TrimSpace(out)))
		})
	}
}

// pythonWith returns a Python that has a module.
func pythonWith(t *testing.T, module string) string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import "+module).Run() == nil {
			return python
		}
	}
	needs.Missing(t, "Python's module "+module, "python3-"+module)
	return ""
}
