package server_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/internal/member"
	"gotycoon/server"
)

// portsOf are the ports of a server, by the names of openPorts, and "data".
type portsOf map[string]int

// cluster is a primary and a follower that forwards.
type cluster struct {
	t                 *testing.T
	primary, follower *running
	first, second     portsOf // of the primary, of the follower
}

// withEverything gives a server all ports, a script and an update log.
func withEverything(t *testing.T, c *server.Config, sid int) portsOf {
	t.Helper()
	dir := t.TempDir()
	ports := portsOf(openPorts(t, c))
	c.UpdateLog, c.ServerID, c.Services.Limit = filepath.Join(dir, "ulog"), sid, 100
	c.RTSPath, c.CmdDir = filepath.Join(dir, "rts"), dir
	c.Plugins.MemcacheOptions = "f"
	return ports
}

// startCluster starts a primary and a follower. change may alter both configurations.
func startCluster(t *testing.T, change func(c *server.Config, primary bool)) *cluster {
	t.Helper()
	k := &cluster{t: t}
	secret := secretFile(t, clusterSecret)
	configure := func(c *server.Config, primary bool) {
		c.Members.Secret, c.Forward = secret, true
		if change != nil {
			change(c, primary)
		}
	}
	k.primary = start(t, func(c *server.Config) {
		k.first = withEverything(t, c, 1)
		configure(c, true)
	})
	k.first["data"] = k.primary.port()
	k.follower = start(t, func(c *server.Config) {
		k.second = withEverything(t, c, 2)
		c.MasterHost, c.MasterPort = "127.0.0.1", k.first["data"]
		configure(c, false)
	})
	k.second["data"] = k.follower.port()
	return k
}

// figure returns a row of the follower's report.
func (k *cluster) figure(name string) string { return k.follower.dial().rows("/rpc/report")[name] }

// conversation is what a client sends on one connection. Each part is sent when the answer to the
// one before has begun.
type conversation struct {
	name, port string
	parts      []string
}

func header(h frame.Header) string { return string(frame.AppendHeader(nil, h)) }

// bulk's records expire at one instant of the far future, given in absolute time (a negative XT):
// two servers that are told a span of time each count it from their own second.
func bulk(magic frame.Magic, flags uint32, pairs ...string) string {
	b := frame.AppendHeader(nil, frame.Header{Magic: magic, Flags: flags, RNum: uint32(len(pairs))})
	for _, p := range pairs {
		key, value, _ := strings.Cut(p, "=")
		if magic == frame.SetBulk {
			b = frame.AppendRecordHead(b, frame.Record{XT: -1 << 33, Key: []byte(key), Value: []byte(value)})
			b = append(b, value...)
		} else {
			b = frame.AppendKey(b, frame.Key{Key: []byte(key)})
		}
	}
	return string(b)
}

// binaryRequest is a message of memcached's binary protocol.
func binaryRequest(op byte, extras, key, value string) string {
	m := []byte{0x80, op, 0, byte(len(key)), byte(len(extras)), 0, 0, 0}
	size := len(extras) + len(key) + len(value)
	m = append(m, byte(size>>24), byte(size>>16), byte(size>>8), byte(size), 1, 2, 3, 4)
	return string(append(m, make([]byte, 8)...)) + extras + key + value
}

func put(key, value string) string {
	return fmt.Sprintf("PUT /%s HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s", key, len(value), value)
}

func call(procedure, rows string) string {
	return fmt.Sprintf("POST /rpc/%s HTTP/1.1\r\nContent-Type: text/tab-separated-values\r\nContent-Length: %d\r\n\r\n%s", procedure, len(rows), rows)
}

func conversations() []conversation {
	large := strings.Repeat("0123456789abcdef", 1<<18) // 4 MiB
	get := func(path string) string { return "GET /" + path + " HTTP/1.1\r\n\r\n" }
	return []conversation{
		{"verbs", "data", []string{get("v1"), put("v1", "one"), get("v1") + put("v2", "two") + get("v2") + "DELETE /v1 HTTP/1.1\r\n\r\n" + get("v1"),
			"HEAD /v2 HTTP/1.1\r\n\r\n", "PUT /v2 HTTP/1.1\r\nX-Kt-Mode: add\r\nContent-Length: 1\r\n\r\nx", "BREW /pot HTTP/1.1\r\n\r\n"}},
		{"a mix in one write", "data", []string{get("m") + get("m") + put("m", "1") + get("m") + call("increment", "key\tn\nnum\t5\n") + get("rpc/get?key=m") +
			bulk(frame.SetBulk, 0, "a=1", "b=2") + bulk(frame.GetBulk, 0, "a", "zzz", "b") + get("m")}},
		{"procedures", "data", []string{call("void", ""), call("set", "key\tp\nvalue\tq\n"), call("get", "key\tp\n"), call("add", "key\tp\nvalue\tx\n"),
			call("append", "key\tp\nvalue\tr\n"), call("seize", "key\tp\n"), call("remove", "key\tp\n"), call("set_bulk", "_x\t1\n_y\t2\n"),
			call("get_bulk", "_x\t\n_y\t\n"), call("cas", "key\tx\noval\t1\nnval\t2\n"), call("nothing", ""), call("remove_bulk", "_x\t\n")}},
		{"a procedure in the query", "data", []string{get("rpc/set?key=u&value=v"), get("rpc/get?key=u")}},
		{"cursors", "data", []string{call("cur_jump", "CUR\t1\nDB\t0\n"), call("set", "key\tc\nvalue\t1\n"), call("cur_jump", "CUR\t1\nkey\tc\n"),
			call("cur_set_value", "CUR\t1\nvalue\t2\n"), call("cur_get", "CUR\t1\n"), call("cur_delete", "CUR\t1\n")}},
		{"signals", "data", []string{call("void", "SIGNAL\ts\n"), get("rpc/void?WAIT=s&WAITTIME=0.01")}},
		{"chunks", "data", []string{"POST /rpc/set HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nkey\tch\nva\r\n6\r\nlue\ty\n\r\n0\r\n\r\n", get("ch")}},
		{"errors", "data", []string{call("set", "key\tx\n"), "PUT /nowhere/k HTTP/1.1\r\nContent-Length: 0\r\n\r\n", call("set", "DB\t99\nkey\tx\nvalue\ty\n")}},
		{"a large body", "data", []string{put("large", large), get("large")}},
		{"an atomic bulk", "data", []string{call("set_bulk", "atomic\t\n_a1\t"+large[:1<<20]+"\n_a2\t"+large[:1<<20]+"\n"), call("get_bulk", "_a1\t\n_a2\t\n")}},
		{"binary", "data", []string{bulk(frame.GetBulk, 0, "k"), bulk(frame.SetBulk, 0, "k=v", "l=w"), bulk(frame.GetBulk, 0, "k", "l"),
			bulk(frame.SetBulk, frame.NoReply, "q=r") + bulk(frame.RemoveBulk, 0, "k", "none") + bulk(frame.GetBulk, 0, "k", "q")}},
		{"a script that is not there", "data", []string{string(frame.AppendScript(nil, frame.Script{Name: []byte("f")}))}},
		{"the end of a connection", "data", []string{"PUT /end HTTP/1.1\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"}},
		{"memcached", "memcache", []string{"get a\r\n", "set a 5 0 3\r\none\r\n", "get a b\r\n", "add a 0 0 1\r\nx\r\n", "append a 0 0 1\r\n!\r\n", "get a\r\n",
			"incr a 1\r\n", "set n 0 0 1\r\n1\r\n", "incr n 41\r\n", "touch n 0\r\n", "gat 0 n\r\n", "delete n\r\n", "delete n\r\n", "bogus\r\n",
			"set too few\r\n", "mn\r\n", "ms m 2 F7\r\nhi\r\n", "mg m v f\r\n", "ma n N0 J5 v\r\n", "md m\r\n", "flush_all\r\n", "get a\r\n"}},
		{"memcached without replies", "memcache", []string{"get x\r\nset x 0 0 1 noreply\r\n1\r\nset y 0 0 1 noreply\r\n2\r\nincr x 1 noreply\r\nget x y\r\n"}},
		{"memcached's line ends", "memcache", []string{"set x 0 0 1\n1\r\nget x\n"}},
		{"memcached, binary", "memcache", []string{binaryRequest(0x0a, "", "", ""), binaryRequest(0x11, "\x00\x00\x00\x01\x00\x00\x00\x00", "k", "v") +
			binaryRequest(0x0d, "", "none", "") + binaryRequest(0x04, "", "none", ""), binaryRequest(0x21, "", "PLAIN", "\x00a\x00b")}},
		{"counters", "counter", []string{"\x90\x02\x00\x00\x00\x00\x00\x0b\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x05\x00\x01c",
			"\x90\x01\x00\x00\x00\x00\x00\x03\x00\x00\x00\x02\x00\x01c", "\x90\x77\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03"}},
		{"locks", "lock", []string{"lock a\n", "status a\n", "release a\n", "nonsense\n"}},
		{"quotas", "quota", []string{"GET /query HTTP/1.1\r\n\r\n", "GET /apply?amt=7 HTTP/1.1\r\n\r\n", "GET /query HTTP/1.1\r\n\r\n", "GET /nothing HTTP/1.1\r\n\r\n"}},
	}
}

// hold has the conversation and returns all answers.
func (c *conversation) hold(t *testing.T, port int) string {
	t.Helper()
	conn, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	var all bytes.Buffer
	buf := make([]byte, 1<<20)
	for i, part := range c.parts {
		if i > 0 {
			n, err := conn.Read(buf)
			require.NoError(t, err, "%s: %.80q", c.name, part)
			all.Write(buf[:n])
		}
		sent := make(chan error, 1)
		go func() {
			_, err := io.WriteString(conn, part)
			sent <- err
		}()
		require.NoError(t, <-sent)
	}
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	_, err = io.Copy(&all, conn)
	require.NoError(t, err, c.name)
	return all.String()
}

// comparable takes out what differs from server to server: dates, ports, and times of memcached.
func comparable(answer string) string {
	return regexp.MustCompile(`Date: [^\r]*|localhost:\d+`).ReplaceAllString(answer, "…")
}

// Whatever a client says, by whatever protocol, it gets from a follower what the primary alone
// would answer, byte for byte and in order; and what it has stored is on the primary.
func TestForwardedAnswersAreThePrimarys(t *testing.T) {
	for _, c := range conversations() {
		t.Run(c.name, func(t *testing.T) {
			var ports portsOf
			reference := start(t, func(cfg *server.Config) { ports = withEverything(t, cfg, 1) })
			ports["data"] = reference.port()
			k := startCluster(t, nil)
			want := c.hold(t, ports[c.port])
			require.NotEmpty(t, want)
			require.Equal(t, comparable(want), comparable(c.hold(t, k.second[c.port])))
			require.Equal(t, "1", k.figure("forward_conn_total"))
			require.Equal(t, contents(reference), contents(k.primary))
			eventually(t, func() bool { return k.figure("forward_conn_count") == "0" })
			eventually(t, func() bool { return contents(k.follower) == contents(k.primary) })
		})
	}
}

// contents are the records of a server, as one text.
func contents(s *running) string {
	c := s.dial()
	defer c.Close()
	_, keys := c.get("/rpc/match_prefix?prefix=")
	var all strings.Builder
	for line := range strings.Lines(keys) {
		key, _, _ := strings.Cut(line, "\t")
		if name, ok := strings.CutPrefix(key, "_"); ok {
			_, value := c.get("/" + name)
			fmt.Fprintf(&all, "%s=%.20q(%d)\n", name, value, len(value))
		}
	}
	return all.String()
}

// Reads stay: the follower answers them although the primary is gone.
func TestReadsAreAnsweredHere(t *testing.T) {
	k := startCluster(t, nil)
	writer, reader := k.follower.dial(), k.follower.dial()
	writer.send(put("k", "v"))
	status, _ := writer.reply()
	require.Equal(t, 201, status)
	reader.awaitValue("k", "v")
	require.Zero(t, k.primary.stop())
	_, body := reader.get("/k")
	require.Equal(t, "v", body)
	require.Equal(t, "1", k.figure("forward_conn_total"))
	writer.requireEOF()
}

// The primary cannot be reached: nobody waits for long, everybody is told in their own words, and
// nothing was done.
func TestThePrimaryIsGone(t *testing.T) {
	k := startCluster(t, nil)
	require.Zero(t, k.primary.stop())
	var all sync.WaitGroup
	defer all.Wait()
	for port, exchanges := range map[string][][2]string{
		"data": {
			{put("k", "v"), "HTTP/1.1 503 Service Unavailable\r\n"},
			{call("set", "key\tk\nvalue\tv\n"), "HTTP/1.1 503 Service Unavailable\r\n"},
			{bulk(frame.SetBulk, 0, "k=v"), "\xbf"},
			{bulk(frame.SetBulk, frame.NoReply, "k=v"), ""},
			{string(frame.AppendScript(nil, frame.Script{Name: []byte("f")})), "\xbf"},
		},
		"memcache": {
			{"set k 0 0 1\r\nv\r\n", "SERVER_ERROR this server is not the primary, and has not reached the primary ("},
			{"set k 0 0 1 noreply\r\nv\r\n", ""},
			{binaryRequest(0x01, "\x00\x00\x00\x00\x00\x00\x00\x00", "k", "v"), "\x81\x01\x00\x00\x00\x00\x00\x85"},
		},
		"counter":  {{"\x90\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01", "\x91\x00\x20"}},
		"lock":     {{"lock a\n", "NOT_PRIMARY: no primary reached\n"}},
		"sequence": {{"GET /fetch HTTP/1.1\r\n\r\n", "HTTP/1.1 503 Service Unavailable\r\n"}},
		"quota":    {{"GET /query HTTP/1.1\r\n\r\n", "HTTP/1.1 503 Service Unavailable\r\n"}},
	} {
		for _, e := range exchanges {
			all.Go(func() {
				answer := exchange(t, dialHere(t), k.second[port], e[0])
				if !strings.HasPrefix(answer, e[1]) || e[1] == "" && answer != "" {
					t.Errorf("%q: %q", e[0], answer)
				}
				if strings.HasPrefix(answer, "HTTP/1.1") && port == "data" && !strings.Contains(answer, "\r\nRetry-After: 1\r\n") {
					t.Errorf("%q: %q", e[0], answer)
				}
			})
		}
	}
	all.Wait()
	status, _ := k.follower.dial().get("/k")
	require.Equal(t, 404, status)
	require.Equal(t, "12", k.figure("forward_failures"))
}

// A server that has become the primary serves updates itself, and ends the connections that have
// moved to the former one.
func TestMovedConnectionsEndWhenThePrimaryChanges(t *testing.T) {
	k := startCluster(t, nil)
	moved := k.follower.dial()
	moved.send(put("k", "1"))
	status, _ := moved.reply()
	require.Equal(t, 201, status)
	locked, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", k.second["lock"]))
	require.NoError(t, err)
	defer locked.Close()
	require.NoError(t, locked.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(locked, "lock a\n")
	require.NoError(t, err)
	lines := bufio.NewReader(locked)
	_, err = lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "2", k.figure("forward_conn_count"))
	k.follower.dial().rows("/rpc/tune_replication")
	moved.requireEOF()
	_, err = lines.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	again := k.follower.dial()
	again.send(put("k", "2"))
	status, _ = again.reply()
	require.Equal(t, 201, status)
	_, body := k.primary.dial().get("/k")
	require.Equal(t, "1", body)
	_, body = again.get("/k")
	require.Equal(t, "2", body)
}

// A server that becomes a follower lets nobody go on holding a lock that the primary may grant to
// others.
func TestLocksEndWithTheirPrimary(t *testing.T) {
	k := startCluster(t, nil)
	held, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", k.first["lock"]))
	require.NoError(t, err)
	defer held.Close()
	require.NoError(t, held.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(held, "lock a\n")
	require.NoError(t, err)
	lines := bufio.NewReader(held)
	_, err = lines.ReadString('\n')
	require.NoError(t, err)
	k.follower.dial().rows("/rpc/tune_replication")
	k.primary.dial().rows("/rpc/tune_replication?host=127.0.0.1&port=" + strconv.Itoa(k.second["data"]))
	_, err = lines.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	require.True(t, strings.HasPrefix(exchange(t, dialHere(t), k.first["lock"], "lock a\n"), "GRANTED"))
	require.Equal(t, "1", k.primary.dial().rows("/rpc/report")["forward_conn_total"])
}

// Moved connections end too where a third server becomes the primary.
func TestMovedConnectionsEndWhenAnotherServerIsThePrimary(t *testing.T) {
	k := startCluster(t, func(c *server.Config, primary bool) { c.Replication.ReadOnly = !primary })
	secret := secretFile(t, clusterSecret)
	third := start(t, func(c *server.Config) {
		c.ServerID, c.UpdateLog, c.Members.Secret = 3, filepath.Join(t.TempDir(), "ulog"), secret
	})
	moved := k.follower.dial()
	moved.send(put("k", "1"))
	status, _ := moved.reply()
	require.Equal(t, 201, status)
	k.follower.dial().rows("/rpc/tune_replication?host=127.0.0.1&port=" + strconv.Itoa(third.port()))
	moved.requireEOF()
	again := k.follower.dial()
	again.send(put("k", "3"))
	status, _ = again.reply()
	require.Equal(t, 201, status)
	_, body := third.dial().get("/k")
	require.Equal(t, "3", body)
	_, body = k.primary.dial().get("/k")
	require.Equal(t, "1", body)
}

// Two servers that follow each other forward nothing in a circle.
func TestNoLoops(t *testing.T) {
	k := startCluster(t, nil)
	k.primary.dial().rows("/rpc/tune_replication?host=127.0.0.1&port=" + strconv.Itoa(k.second["data"]))
	c := k.follower.dial()
	c.send(put("k", "v"))
	status, body := c.reply()
	require.Equal(t, 503, status)
	require.Contains(t, body, "this server is not the primary: it follows 127.0.0.1:")
}

// The same, where the primary has become a follower after the connection was forwarded.
func TestAForwardedConnectionIsNotForwardedAgain(t *testing.T) {
	k := startCluster(t, nil)
	c, err := member.Dial(t.Context(), k.primary.addr, asMember(t, clusterSecret, frame.MemberData, "127.0.0.1:99"))
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	k.primary.dial().rows("/rpc/tune_replication?host=127.0.0.1&port=" + strconv.Itoa(k.second["data"]))
	_, err = io.WriteString(c, put("k", "v"))
	require.NoError(t, err)
	answer, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Contains(t, string(answer), "503 Service Unavailable")
	require.Contains(t, string(answer), "should have known")
}

// A reader that asks for a lag that the follower exceeds is served by the primary.
func TestReadsThatMustNotBeOld(t *testing.T) {
	k := startCluster(t, nil)
	c := k.follower.dial()
	k.primary.dial().set(0, "k", "v")
	c.awaitValue("k", "v")
	eventually(t, func() bool { return k.figure("repl_lag_seconds") == "0.000" })
	read := func(lag string) {
		c := k.follower.dial()
		c.send("GET /k HTTP/1.1\r\nX-Kt-Max-Lag: " + lag + "\r\n\r\n")
		_, body := c.reply()
		require.Equal(t, "v", body)
	}
	read("1000000")
	require.Equal(t, "0", k.figure("forward_conn_total"))
	read("-1")
	read("x")
	eventually(t, func() bool { return k.figure("forward_conn_total") == "2" })
	jump := k.follower.dial()
	jump.send("GET /rpc/cur_jump?CUR=1&DB=0 HTTP/1.1\r\nX-Kt-Max-Lag: 1000000\r\n\r\n")
	status, _ := jump.reply()
	require.Equal(t, 200, status)
	require.Equal(t, "2", k.figure("forward_conn_total"))
}

// Rules of both servers count for the client, not for the follower.
func TestRulesForForwardedClients(t *testing.T) {
	dir := t.TempDir()
	files := map[bool]string{true: filepath.Join(dir, "primary"), false: filepath.Join(dir, "follower")}
	accessFile(t, files[true], "anna bob eve", "allow anna read,write db=*", "allow bob read db=*", "allow eve read,write db=*", "allow anyone replicate db=*")
	accessFile(t, files[false], "anna bob eve", "allow anna read,write db=*", "allow bob read,write db=*", "allow eve read db=*", "allow anyone admin db=* from=192.0.2.1")
	k := startCluster(t, func(c *server.Config, primary bool) { c.Access.Path = files[primary] })
	for name, want := range map[string]string{"anna": "201", "bob": "403", "eve": "403", "": "401"} {
		request := put("k-"+name, "v")
		if name != "" {
			request = as(name, request)
		}
		answer := exchange(t, dialHere(t), k.second["data"], request)
		require.True(t, strings.HasPrefix(answer, "HTTP/1.1 "+want), "%s: %s", name, answer)
	}
	login := func(name string) string { return fmt.Sprintf("set x 0 0 %d\r\n%s %s\r\n", 2*len(name)+1, name, name) }
	require.Equal(t, "STORED\r\nSTORED\r\nVALUE k 0 1\r\nv\r\nEND\r\n",
		exchange(t, dialHere(t), k.second["memcache"], login("anna")+"set k 0 0 1\r\nv\r\nget k\r\n"))
	require.True(t, strings.HasPrefix(exchange(t, dialHere(t), k.second["memcache"], login("bob")+"set k 0 0 1\r\nx\r\n"), "STORED\r\nCLIENT_ERROR access denied"))
}

// The unique number of an item on a follower is never one that the primary has.
func TestUniqueNumbersOfAFollowerFitNothing(t *testing.T) {
	k := startCluster(t, nil)
	k.primary.dial().set(0, "k", "xxxxx")
	k.follower.dial().awaitValue("k", "xxxxx")
	answer := exchange(t, dialHere(t), k.second["memcache"], binaryRequest(0x00, "", "k", ""))
	require.Equal(t, "\x80\x00\x00\x00\x00\x00\x00\x00", answer[16:24])
	require.Equal(t, "0", k.figure("forward_conn_total"))
	exchange(t, dialHere(t), k.second["memcache"], "gets k\r\n")
	require.Equal(t, "1", k.figure("forward_conn_total"))
}

// Hundreds of connections move at a time, and the server stops in the midst of them.
func TestManyForwardedConnections(t *testing.T) {
	const clients, rounds = 200, 5
	k := startCluster(t, nil)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			c, err := net.Dial("tcp4", k.follower.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			in := bufio.NewReader(c)
			for j := range rounds {
				_ = c.SetDeadline(time.Now().Add(patience))
				value := fmt.Sprintf("%d-%d", i, j)
				fmt.Fprintf(c, "GET /absent HTTP/1.1\r\n\r\n%sGET /many%d HTTP/1.1\r\n\r\n", put(fmt.Sprintf("many%d", i), value), i)
				for _, want := range []string{"404", "201", "200"} {
					line, err := in.ReadString('\n')
					if err != nil || !strings.Contains(line, want) {
						t.Errorf("%s: %q %v", want, line, err)
						return
					}
					size := 0
					for line != "\r\n" {
						if line, err = in.ReadString('\n'); err != nil {
							t.Error(err)
							return
						}
						if text, ok := strings.CutPrefix(line, "Content-Length: "); ok {
							size, _ = strconv.Atoi(strings.TrimSpace(text))
						}
					}
					body := make([]byte, size)
					if _, err := io.ReadFull(in, body); err != nil || want == "200" && string(body) != value {
						t.Errorf("%q %v", body, err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, strconv.Itoa(clients), k.figure("forward_conn_total"))
	idle := make([]*client, 20)
	for i := range idle {
		idle[i] = k.follower.dial()
		idle[i].send(put("last", "x"))
		status, _ := idle[i].reply()
		require.Equal(t, 201, status)
	}
	began := time.Now()
	require.Zero(t, k.follower.stop())
	require.Less(t, time.Since(began), 20*time.Second, "less than -tout, after which idle clients go by themselves")
	for _, c := range idle {
		c.requireEOF()
	}
}

// A moved connection is one of its port: limits count it, and silence ends it.
func TestMovedConnectionsHaveLimits(t *testing.T) {
	k := startCluster(t, func(c *server.Config, primary bool) {
		if !primary {
			c.Limits.Idle = 3 * time.Second // the test looks at the figure before it is over
		}
	})
	c := k.follower.dial()
	c.send(put("k", "v"))
	status, _ := c.reply()
	require.Equal(t, 201, status)
	require.Equal(t, "1", k.figure("forward_conn_count"))
	c.requireEOF()
}

// Clients over TLS, and servers that know each other by certificate or by secret.
func TestForwardingOverTLS(t *testing.T) {
	ca := authority(t)
	for name, secret := range map[string]bool{"certificate": false, "secret": true} {
		t.Run(name, func(t *testing.T) {
			k := startCluster(t, func(c *server.Config, _ bool) {
				withTLS(c, ca)
				c.TLS.Mode, c.TLS.Client = server.TLSAllowed, server.TLSOptional
				c.TLS.MasterCA, c.TLS.MasterCert, c.TLS.MasterKey = ca.Path("ca.pem"), ca.Path("user.pem"), ca.Path("user.key")
				if !secret {
					c.Members.Secret = ""
				}
			})
			e := &everyPort{running: k.follower, ca: ca}
			for port, addr := range map[string]*string{"memcache": &e.memcached, "counter": &e.counter, "lock": &e.lock, "sequence": &e.sequence, "quota": &e.quota} {
				*addr = fmt.Sprintf("127.0.0.1:%d", k.second[port])
			}
			for protocol, err := range e.ask(trusting(t, ca, "user")) {
				require.NoError(t, err, protocol)
			}
			large := conversation{name: "large", parts: []string{put("big", strings.Repeat("x", 8<<20)), "GET /big HTTP/1.1\r\n\r\n"}}
			require.Greater(t, len(large.hold(t, k.second["data"])), 8<<20)
			c := k.primary.dial()
			_, body := c.get("/key")
			require.Equal(t, "value", body)
			require.NotEqual(t, "0", k.figure("forward_conn_total"))
		})
	}
}

// A client that does not take its answers is cut off after -tout, though the kernel moves the bytes.
func TestAMovedClientThatDoesNotReadIsCutOff(t *testing.T) {
	k := startCluster(t, func(c *server.Config, primary bool) {
		if !primary {
			c.Timeout = 5 * time.Second // for the kernel of a slow machine to move anything
		}
	})
	c := k.follower.dial()
	c.send(put("big", strings.Repeat("x", 32<<20)))
	status, _ := c.reply()
	require.Equal(t, 201, status)
	require.Equal(t, "1", k.figure("forward_conn_count"))
	c.send("GET /big HTTP/1.1\r\n\r\n")
	eventually(t, func() bool { return k.figure("forward_conn_count") == "0" })
	_, err := io.Copy(io.Discard, c.in)
	require.Error(t, err)
}

func TestWhatForwardingNeeds(t *testing.T) {
	secret := secretFile(t, clusterSecret)
	for text, change := range map[string]func(*server.Config){
		"-forward needs what following a master needs": func(c *server.Config) { c.Members.Secret = secret },
		"-forward needs proof that":                    func(c *server.Config) { c.RTSPath, c.ServerID = filepath.Join(t.TempDir(), "rts"), 1 },
		"a secret at least 32":                         func(c *server.Config) { c.Members.Secret = secretFile(t, "short") },
	} {
		cfg := server.DefaultConfig()
		cfg.Port, cfg.Forward = 0, true
		change(&cfg)
		wrong, _, _ := server.Examine(cfg)
		require.ErrorContains(t, errors.Join(wrong...), text)
	}
}
