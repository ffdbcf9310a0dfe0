package server_test

import (
	"fmt"
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

	"gotycoon/client/wire/frame"
	"gotycoon/server"
)

func (s *running) port() int {
	s.t.Helper()
	_, text, err := net.SplitHostPort(s.addr)
	require.NoError(s.t, err)
	port, err := strconv.Atoi(text)
	require.NoError(s.t, err)
	return port
}

// startMaster runs a server with an update log in a directory.
func startMaster(t *testing.T, dir string) *running {
	t.Helper()
	return start(t, func(c *server.Config) { c.UpdateLog, c.ServerID = filepath.Join(dir, "ulog"), 1 })
}

// startSlave runs a server that follows a master; nil: none yet.
func startSlave(t *testing.T, master *running, dir string, dbs ...string) *running {
	t.Helper()
	return start(t, func(c *server.Config) {
		c.ServerID, c.RTSPath, c.CmdDir = 2, filepath.Join(dir, "rts"), dir
		if master != nil {
			c.MasterHost, c.MasterPort = "127.0.0.1", master.port()
		}
		if len(dbs) > 0 {
			c.Databases = dbs
		}
	})
}

// rows returns what a procedure answers.
func (c *client) rows(path string) map[string]string {
	c.t.Helper()
	status, body := c.get(path)
	require.Equal(c.t, 200, status, body)
	rows := map[string]string{}
	for line := range strings.Lines(body) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		rows[name] = value
	}
	return rows
}

func (c *client) awaitValue(key, want string) {
	c.t.Helper()
	eventually(c.t, func() bool { _, body := c.get("/rpc/get?key=" + key); return body == "value\t"+want+"\n" })
}

// linesWith returns the log lines that contain a word.
func (s *running) linesWith(word string) []string {
	return slices.DeleteFunc(s.log.lines(), func(line string) bool {
		return !strings.Contains(line, word) || !strings.Contains(line, "[SYSTEM]")
	})
}

func TestSlaveFollowsItsMaster(t *testing.T) {
	dir := t.TempDir()
	master := startMaster(t, dir)
	toMaster := master.dial()
	toMaster.get("/rpc/set?key=before&value=1")
	slave := startSlave(t, master, dir)
	toSlave := slave.dial()
	toSlave.awaitValue("before", "1")
	toMaster.get("/rpc/set?key=after&value=2")
	toSlave.awaitValue("after", "2")

	eventually(t, func() bool { return len(toSlave.rows("/rpc/report")["repl_timestamp"]) == 19 })
	rows := toSlave.rows("/rpc/report")
	require.Equal(t, "127.0.0.1", rows["repl_master_host"])
	require.Equal(t, strconv.Itoa(master.port()), rows["repl_master_port"])
	require.Equal(t, "0.000000", rows["repl_interval"])
	require.Regexp(t, `^\d\.\d{6}$`, rows["repl_delay"])
	require.NotContains(t, toMaster.rows("/rpc/report"), "repl_delay")
	require.Equal(t, "streaming", rows["repl_state"])
	require.Equal(t, "2", rows["repl_applied_records"])
	require.Equal(t, "false", rows["repl_read_only"])
	eventually(t, func() bool {
		rows := toSlave.rows("/rpc/report")
		return rows["repl_lag_seconds"] == "0.000" && rows["repl_lag_records"] == "0"
	})
	eventually(t, func() bool {
		rows := toMaster.rows("/rpc/report")
		return rows["repl_slave_count"] == "1" && rows["repl_slave_lag_seconds"] == "0.000" && rows["repl_slave_lag_records"] == "0"
	})
	require.Regexp(t, `^peer=127\.0\.0\.1:\d+ sid=2 white=false ours=true state=streaming connected=\S+ position=\d{19} seconds=0\.000 records=0 contact=\S+$`,
		toMaster.rows("/rpc/replicas")["1"])
	toSlave.get("/rpc/tune_replication?readonly=true")
	require.Equal(t, "true", toSlave.rows("/rpc/report")["repl_read_only"])
	require.Equal(t, "127.0.0.1", toSlave.rows("/rpc/report")["repl_master_host"], "the master stays")
	status, body := toSlave.get("/rpc/set?key=refused&value=2")
	require.Equal(t, 500, status)
	require.Contains(t, body, "permission denied")
	toMaster.get("/rpc/set?key=again&value=3")
	toSlave.awaitValue("again", "3")
	toSlave.get("/rpc/tune_replication?readonly=false")
	toSlave.get("/rpc/set?key=accepted&value=2")
	toSlave.awaitValue("accepted", "2")

	require.Zero(t, slave.stop())
	require.Zero(t, master.stop())
	place := "host=127.0.0.1 port=" + strconv.Itoa(master.port())
	require.Equal(t, []string{
		"[SYSTEM]: replication started: " + place + " rts=0",
		"[SYSTEM]: replication finished: " + place,
	}, slave.linesWith("replication"))
	lines := slave.log.lines()
	require.Less(t, slices.Index(lines, "[SYSTEM]: closing the server socket"), slices.Index(lines, "[SYSTEM]: replication finished: "+place))
	require.Less(t, slices.Index(lines, "[SYSTEM]: replication finished: "+place), slices.Index(lines, "[SYSTEM]: closing a database: path=:"))
	require.Equal(t, []string{"[SYSTEM]: a slave was connected: ts=0 sid=2", "[SYSTEM]: a slave was disconnected: sid=2"},
		master.linesWith("slave"))
	text, err := os.ReadFile(filepath.Join(dir, "rts"))
	require.NoError(t, err)
	require.Regexp(t, `^01\d{18}\n$`, string(text))
}

func TestSlaveIsTuned(t *testing.T) {
	dir := t.TempDir()
	master := startMaster(t, dir)
	master.dial().get("/rpc/set?key=k&value=v")
	slave := startSlave(t, nil, dir)
	c := slave.dial()
	require.NotContains(t, c.rows("/rpc/report"), "repl_master_host")

	c.get(fmt.Sprintf("/rpc/tune_replication?host=127.0.0.1&port=%d&ts=0&iv=5.5", master.port()))
	c.awaitValue("k", "v")
	require.Equal(t, "5.500000", c.rows("/rpc/report")["repl_interval"])

	c.get("/rpc/tune_replication?host=127.0.0.1&port=0&ts=now&iv=-1")
	rows := c.rows("/rpc/report")
	require.Equal(t, []string{"1978", "5.500000"}, []string{rows["repl_master_port"], rows["repl_interval"]})
	c.get("/rpc/tune_replication")
	require.NotContains(t, c.rows("/rpc/report"), "repl_master_host")
	require.Regexp(t, `\[SYSTEM\]: replication setting was modified: host=127.0.0.1 port=\d+ ts=0 iv=5.500000
\[SYSTEM\]: replication setting was modified: host=127.0.0.1 port=1978 ts=1\d{18} iv=\*
\[SYSTEM\]: replication setting was modified: host= port=1978 ts=\* iv=\*`,
		strings.Join(slave.linesWith("modified"), "\n"))

	status, body := master.dial().get("/rpc/tune_replication?host=x")
	require.Equal(t, 501, status)
	require.Equal(t, "ERROR\tthe RTS file is not set\n", body)
}

// A backup of a slave is complete up to the stamp of the master's last update, which is older than
// the slave's own clock.
func TestBackupOfASlaveHasTheMastersStamp(t *testing.T) {
	dir := t.TempDir()
	master := startMaster(t, dir)
	master.dial().get("/rpc/set?key=k&value=v")
	slave := startSlave(t, nil, dir, filepath.Join(dir, "a.kct"))
	c := slave.dial()
	out := filepath.Join(dir, "out")
	script := "#!/bin/sh\nprintf %s \"$2\" > " + out + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "backup"), []byte(script), 0o755))

	backup := func() string {
		t.Helper()
		status, body := c.get("/rpc/synchronize?command=backup")
		require.Equal(t, 200, status, body)
		text, err := os.ReadFile(out)
		require.NoError(t, err)
		return strings.TrimLeft(string(text), "0")
	}
	require.Regexp(t, `^1\d{18}$`, backup(), "the clock")
	c.get("/rpc/tune_replication?host=no.such.host.invalid&ts=12345")
	eventually(t, func() bool { return c.rows("/rpc/report")["repl_timestamp"] == "12345" })
	require.Equal(t, "12345", backup())
}

func TestUnusableRTSFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nodir")
	s := start(t, func(c *server.Config) { c.RTSPath, c.ServerID = filepath.Join(dir, "x.rts"), 1 })
	require.Contains(t, s.log.lines(), "[ERROR]: opening the RTS file failed: path="+dir+"/x.rts")
	status, _ := s.dial().get("/rpc/tune_replication?host=localhost")
	require.Equal(t, 501, status)
	require.Zero(t, s.stop())
}

// A slave that reads nothing and sends nothing does not keep its master from stopping.
func TestStalledSlaveDoesNotDelayTheStop(t *testing.T) {
	s := start(t, func(c *server.Config) {
		c.UpdateLog, c.ServerID, c.Timeout = filepath.Join(t.TempDir(), "ulog"), 1, time.Hour
	})
	slave := s.dial()
	slave.send("\xb1\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02")
	_, err := io.ReadFull(slave, make([]byte, 1))
	require.NoError(t, err)
	c := s.dial()
	value := strings.Repeat("v", 1<<20)
	for i := range 32 {
		c.send(fmt.Sprintf("PUT /%d HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s", i, len(value), value))
		status, _ := c.reply()
		require.Equal(t, 201, status)
	}
	require.Zero(t, s.stop())
}

// The lag of a slave is not known before the slave has sent its position.
func TestLagOfASlaveThatIsNotHeardOf(t *testing.T) {
	master := startMaster(t, t.TempDir())
	c, err := net.Dial("tcp", master.addr)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write(frame.AppendFollow(nil, frame.Follow{SID: 2}))
	require.NoError(t, err)
	client := master.dial()
	eventually(t, func() bool { return client.rows("/rpc/report")["repl_slave_count"] == "1" })
	rows := client.rows("/rpc/report")
	require.Equal(t, "-1", rows["repl_slave_lag_seconds"])
	require.Equal(t, "-1", rows["repl_slave_lag_records"])
}

// A slave whose master has had nothing new for long knows that until it hears no more of the master:
// its delay begins then, and not with the last update.
func TestTheDelayBeginsWithTheLastSignOfLife(t *testing.T) {
	dir := t.TempDir()
	master := startMaster(t, dir)
	status, _ := master.dial().get("/rpc/set?key=a&value=1")
	require.Equal(t, 200, status)
	stored := time.Now()
	slave := startSlave(t, master, dir)
	toSlave := slave.dial()
	toSlave.awaitValue("a", "1")
	const idle = 3 * time.Second
	eventually(t, func() bool {
		return time.Since(stored) > idle && toSlave.rows("/rpc/report")["repl_lag_seconds"] == "0.000"
	})
	heard := time.Now()
	require.Zero(t, master.stop())
	eventually(t, func() bool { return toSlave.rows("/rpc/report")["repl_lag_seconds"] != "0.000" })
	rows := toSlave.rows("/rpc/report")
	delay, err := strconv.ParseFloat(rows["repl_delay"], 64)
	require.NoError(t, err)
	require.Less(t, delay, (time.Since(heard) + idle*5/6).Seconds(), "%v", rows) // a heartbeat comes each second, the last update is older than idle
}
