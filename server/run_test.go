package server_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/freeport"
	"gotycoon/internal/klog"
	"gotycoon/server"
)

func TestLogOfALife(t *testing.T) {
	s := start(t, nil)
	c := s.dial()
	status, _ := c.get("/rpc/set?key=a&value=b")
	require.Equal(t, 200, status)
	c.Close()
	eventually(t, func() bool { return slices.Contains(s.log.lines(), "[INFO]: disconnecting: expr=PEER") })
	require.Zero(t, s.stop())
	require.Equal(t, []string{
		"[SYSTEM]: ================ [START]: pid=N",
		"[SYSTEM]: opening a database: path=:",
		"[INFO]: durability",
		"[INFO]: protected",
		"[SYSTEM]: starting the server: expr=:PORT",
		"[SYSTEM]: server socket opened: expr=:PORT timeout=30.0",
		"[SYSTEM]: listening server socket started: fd=N",
		"[INFO]: connected: expr=PEER",
		"[INFO]: (PEER): GET /rpc/set?key=a&value=b HTTP/1.1: 200",
		"[INFO]: disconnecting: expr=PEER",
		"[SYSTEM]: server stopped",
		"[SYSTEM]: finishing the server",
		"[SYSTEM]: closing the server socket",
		"[SYSTEM]: closing a database: path=:",
		"[SYSTEM]: ================ [FINISH]: pid=N",
	}, s.log.lines())
}

func TestHTTPAndBinaryAlternateOnOneConnection(t *testing.T) {
	c := start(t, nil).dial()
	getBulkOfNothing := "\xba\x00\x00\x00\x00\x00\x00\x00\x00"
	c.send("GET /rpc/void HTTP/1.1\r\n\r\n" + getBulkOfNothing + "GET /rpc/void HTTP/1.1\r\n\r\n")
	status, _ := c.reply()
	require.Equal(t, 200, status)
	answer := make([]byte, 5)
	_, err := io.ReadFull(c.in, answer)
	require.NoError(t, err)
	require.Equal(t, []byte("\xba\x00\x00\x00\x00"), answer)
	status, _ = c.reply()
	require.Equal(t, 200, status)
}

func TestStopAnswersWaitersAndClosesIdleConnections(t *testing.T) {
	s := start(t, nil)
	idle, waiter := s.dial(), s.dial()
	idle.get("/rpc/void")
	waiter.send("GET /rpc/void HTTP/1.1\r\n\r\nGET /rpc/void?WAIT=x HTTP/1.1\r\n\r\n")
	waiter.reply() // it leaves before the second request begins to wait
	s.cancel()
	status, body := waiter.reply()
	require.Equal(t, 503, status)
	require.Equal(t, "ERROR\tthe condition timed out\n", body)
	waiter.requireEOF()
	idle.requireEOF()
	require.Zero(t, s.stop())
	lines := s.log.lines()
	lines = lines[slices.Index(lines, "[SYSTEM]: server stopped"):][:6]
	require.Equal(t, []string{"[SYSTEM]: server stopped", "[SYSTEM]: finishing the server"}, lines[:2])
	const answered, gone = "[INFO]: (PEER): GET /rpc/void?WAIT=x HTTP/1.1: 503", "[INFO]: disconnecting: expr=PEER"
	// Nobody promises which connection is first. Each is gone after its last answer.
	require.ElementsMatch(t, []string{answered, gone}, lines[2:4])
	require.Equal(t, []string{gone, "[SYSTEM]: closing the server socket"}, lines[4:])
}

func TestHalfARequestDoesNotDelayTheStop(t *testing.T) {
	s := start(t, func(c *server.Config) { c.Timeout = time.Hour })
	half := s.dial()
	half.send("GET /rpc/void HTTP")
	eventually(t, func() bool { return slices.Contains(s.log.lines(), "[INFO]: connected: expr=PEER") })
	require.Zero(t, s.stop())
}

func TestLastReplyReachesAClientThatStillSends(t *testing.T) {
	c := start(t, nil).dial()
	c.send("GET /rpc/void HTTP/1.1\r\nConnection: close\r\n\r\n" + strings.Repeat("x", 100<<10))
	status, _ := c.reply()
	require.Equal(t, 200, status)
	c.requireEOF()
}

func TestReport(t *testing.T) {
	s := start(t, func(c *server.Config) { c.Threads = 1000 })
	other := s.dial()
	other.get("/rpc/void")
	_, body := s.dial().get("/rpc/report")
	rows := map[string]string{}
	for line := range strings.Lines(body) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		rows[name] = value
	}
	for _, name := range []string{
		"cnt_get", "conf_kc_features", "conf_kc_version", "conf_kt_features", "conf_kt_version", "db_0", "db_total_count",
		"serv_current_time", "serv_running_term", "serv_task_count", "sys_mem_cached", "sys_mem_free", "sys_mem_peak",
		"sys_mem_rss", "sys_mem_size", "sys_mem_total", "sys_ru_stime", "sys_ru_utime",
	} {
		require.Contains(t, rows, name)
	}
	require.Equal(t, "2", rows["serv_conn_count"])
	require.Equal(t, "64", rows["serv_thread_count"])
	require.Equal(t, "Linux", rows["conf_os_name"])
	require.Regexp(t, `^\d{10}\.\d{6}$`, rows["serv_current_time"])
}

func TestPeriodicSynchronization(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.kch")
	s := start(t, func(c *server.Config) {
		c.Databases = []string{path}
		c.AutoSync, c.AutoSyncHard = time.Millisecond, true
	})
	eventually(t, func() bool { return slices.Contains(s.log.lines(), "[INFO]: synchronizing databases") })
	require.Zero(t, s.stop())
}

func TestDataOutlivesTheServer(t *testing.T) {
	dir := t.TempDir()
	change := func(c *server.Config) {
		c.UpdateLog, c.ServerID = filepath.Join(dir, "ulog"), 1
		c.Databases = []string{filepath.Join(dir, "a.kct")}
	}
	s := start(t, change)
	s.dial().get("/rpc/set?key=a&value=b")
	require.Zero(t, s.stop())
	_, body := start(t, change).dial().get("/rpc/get?key=a")
	require.Equal(t, "value\tb\n", body)
}

// takePort occupies a port that clients could use, unlike those that the system chooses.
func takePort(t *testing.T) int {
	t.Helper()
	port := freeport.Take(t)
	socket, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
	require.NoError(t, err)
	t.Cleanup(func() { socket.Close() })
	return port
}

func TestStartErrors(t *testing.T) {
	busyPort := takePort(t)
	opened := []string{"[SYSTEM]: ================ [START]: pid=N", "[SYSTEM]: opening a database: path=:", "[INFO]: durability"}
	protected := append(slices.Clone(opened), "[INFO]: protected")
	closed := []string{"[SYSTEM]: closing a database: path=:", "[SYSTEM]: ================ [FINISH]: pid=N"}
	for _, row := range []struct {
		name   string
		change func(*server.Config)
		log    []string
	}{
		{"no time for the network", func(c *server.Config) { c.Timeout = 0 }, slices.Concat(protected, []string{
			"[SYSTEM]: starting the server: expr=", "[ERROR]: the network configuration is not set"}, closed)},
		{"port in use", func(c *server.Config) { c.Host, c.Port = "localhost", busyPort }, slices.Concat(opened, []string{
			"[SYSTEM]: starting the server: expr=PEER", "[ERROR]: socket error: expr=PEER msg=bind failed",
			"[ERROR]: this server cannot listen on PEER: another process has the port, 'ss -ltnp' shows which. End that process, or choose another port"}, closed)},
		{"port that clients cannot parse", func(c *server.Config) { c.Port = 40000 }, slices.Concat(protected, []string{
			"[SYSTEM]: starting the server: expr=:PORT", "[ERROR]: socket error: expr=:PORT msg=invalid address expression"}, closed)},
		{"unknown host", func(c *server.Config) { c.Host = "no.such.host.invalid" }, []string{opened[0],
			"[ERROR]: unknown host: no.such.host.invalid"}},
		{"unknown type", func(c *server.Config) { c.Databases = []string{":", "foo.xyz", "%"} }, []string{opened[0], opened[1],
			"[SYSTEM]: opening a database: path=foo.xyz",
			"[ERROR]: could not open a database file: foo.xyz: invalid operation: unknown database type"}},
		{"missing directory", func(c *server.Config) { c.Databases = []string{"nodir/x.kch"} }, []string{opened[0],
			"[SYSTEM]: opening a database: path=nodir/x.kch",
			"[ERROR]: could not open a database file: nodir/x.kch: no repository: open failed (file not found)"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			cfg := server.DefaultConfig()
			row.change(&cfg)
			var log buffer
			require.Equal(t, 1, server.Run(context.Background(), cfg, &log, io.Discard))
			require.Equal(t, row.log, log.lines())
		})
	}
}

func TestUnusableUpdateLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	cfg := server.DefaultConfig()
	cfg.UpdateLog, cfg.ServerID = path, 3
	var log buffer
	require.Equal(t, 1, server.Run(context.Background(), cfg, &log, io.Discard))
	require.Equal(t, []string{
		"[SYSTEM]: ================ [START]: pid=N",
		"[SYSTEM]: opening the update log: path=" + path + " sid=3",
		"[ERROR]: could not open the update log: " + path,
	}, log.lines()[:3])
}

func TestConfigurationErrors(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*server.Config)
		want   string
	}{
		{"update log without ID", func(c *server.Config) { c.UpdateLog = "u" }, "update log requires the server ID"},
		{"master without ID", func(c *server.Config) { c.MasterHost, c.RTSPath = "h", "r" }, "replication requires the server ID"},
		{"master without RTS file", func(c *server.Config) { c.MasterHost, c.ServerID = "h", 1 },
			"replication requires the replication time stamp file"},
		{"ID of more than 16 bits", func(c *server.Config) { c.ServerID = 65536 }, "65536: the server ID is at most 65535"},
		{"201 databases", func(c *server.Config) { c.Databases = slices.Repeat([]string{":"}, 201) }, "too much databases"},
		{"missing command directory", func(c *server.Config) { c.CmdDir = "nodir" }, "nodir: no such directory"},
		{"unwritable log", func(c *server.Config) { c.LogPath = "nodir/a.log" }, "nodir/a.log: could not open the log file"},
		{"daemon with a relative RTS file", func(c *server.Config) { c.Daemon, c.RTSPath = true, "x.rts" },
			"x.rts: a daemon can accept absolute path only"},
		{"daemon with a relative path", func(c *server.Config) { c.Daemon, c.LogPath = true, "rel.log" },
			"rel.log: a daemon can accept absolute path only"},
	} {
		t.Run(row.name, func(t *testing.T) {
			cfg := server.DefaultConfig()
			row.change(&cfg)
			var stdout, stderr bytes.Buffer
			require.Equal(t, 1, server.Run(context.Background(), cfg, &stdout, &stderr))
			require.Equal(t, "ktserver: "+row.want+"\n", stderr.String())
			require.Empty(t, stdout.String())
		})
	}
}

func TestSilentServer(t *testing.T) {
	s := start(t, func(c *server.Config) { c.LogLevel = klog.LevelSilent })
	s.dial().get("/rpc/void")
	require.Zero(t, s.stop())
	require.Empty(t, s.log.lines())
}

func TestExpiredRecordsAreCollectedWhileNobodyAsks(t *testing.T) {
	s := start(t, nil)
	c := s.dial()
	c.get("/rpc/set?key=a&value=b&xt=-1")
	require.Eventually(t, func() bool { // asking more often would keep the server from it
		_, body := c.get("/rpc/status")
		return strings.Contains(body, "count\t0\n")
	}, patience, 350*time.Millisecond)
}

// A client that speaks TLS to a port without it finds its mistake in the log.
func TestTLSAtAPlainPortIsLogged(t *testing.T) {
	s := start(t, nil)
	c, err := net.Dial("tcp", s.addr)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write([]byte("\x16\x03\x01\x02\x00\x01"))
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.Zero(t, s.stop())
	require.Contains(t, strings.Join(s.log.lines(), "\n"), "speaks TLS: this port speaks HTTP and the binary protocol without TLS: start the server with -tls-cert")
}
