package server_test

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/server"
)

// shortWait is a -sync-timeout that passes in a test. It is longer than a server takes from its start
// to its first request on a busy machine: followers have so long to come before updates are refused.
const shortWait = 4 * time.Second

// startConfirmed runs a master that waits for followers.
func startConfirmed(t *testing.T, replicas int, change func(*server.Config)) *running {
	t.Helper()
	dir := t.TempDir()
	return start(t, func(c *server.Config) {
		c.UpdateLog, c.ServerID = filepath.Join(dir, "ulog"), 1
		c.Sync.Replicas = replicas
		if change != nil {
			change(c)
		}
	})
}

// startFollower runs a follower with a server ID.
func startFollower(t *testing.T, master *running, sid int) *running {
	t.Helper()
	dir := t.TempDir()
	return start(t, func(c *server.Config) {
		c.ServerID, c.RTSPath = sid, filepath.Join(dir, "rts")
		c.MasterHost, c.MasterPort = "127.0.0.1", master.port()
	})
}

func TestAnUpdateIsAnsweredWhenAFollowerHasIt(t *testing.T) {
	master := startConfirmed(t, 2, nil)
	followers := []*running{startFollower(t, master, 2), startFollower(t, master, 3)}
	c := master.dial()
	for i := range 100 {
		status, body := c.get(fmt.Sprintf("/rpc/set?key=%d&value=x", i))
		require.Equal(t, 200, status, body)
		for _, f := range followers {
			status, _ = f.dial().get(fmt.Sprintf("/rpc/get?key=%d", i))
			require.Equal(t, 200, status, "a follower lacks an update that was answered")
		}
	}
}

func TestWithoutFollowersUpdatesAreNotConfirmedAndThenRefused(t *testing.T) {
	master := startConfirmed(t, 1, func(c *server.Config) { c.Sync.Timeout = shortWait })
	c := master.dial()
	status, body := c.get("/rpc/set?key=a&value=1")
	require.Equal(t, 503, status)
	require.Contains(t, body, "stored here, not confirmed by 1 follower")
	status, body = c.get("/rpc/set?key=b&value=1")
	require.Equal(t, 503, status)
	require.Contains(t, body, "nothing has changed")
	require.Contains(t, body, "0 there, 1 missing")
	require.Equal(t, "refusing", c.rows("/rpc/report")["repl_sync_state"])
	status, _ = c.get("/rpc/get?key=b")
	require.Equal(t, 450, status, "the refused update was stored")
	c.send("PUT /c HTTP/1.1\r\nContent-Length: 1\r\n\r\nx")
	status, body = c.reply()
	require.Equal(t, 503, status, body)

	startFollower(t, master, 2)
	eventually(t, func() bool { status, _ := c.get("/rpc/set?key=b&value=1"); return status == 200 })
	status, body = c.get("/rpc/get?key=a")
	require.Equal(t, 200, status, body)
}

func TestPipelinedRequestsKeepTheirOrder(t *testing.T) {
	master := startConfirmed(t, 1, func(c *server.Config) { c.Sync.Timeout = shortWait })
	c := master.dial()
	c.send(strings.Join([]string{
		"GET /rpc/void HTTP/1.1\r\n\r\n",
		"PUT /a HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
		"GET /none HTTP/1.1\r\n\r\n",
		"GET /a HTTP/1.1\r\n\r\n",
		"GET /rpc/set?key=b&value=1 HTTP/1.1\r\n\r\n",
		"GET /rpc/void HTTP/1.1\r\n\r\n",
	}, ""))
	for i, want := range []int{200, 503, 0, 503, 503, 200} {
		status, body := c.reply()
		if want == 0 { // its stripe may have the stamp of another key
			require.Contains(t, []int{404, 503}, status, body)
			continue
		}
		require.Equal(t, want, status, "%d: %s", i, body)
	}
}

func TestAReaderOfAnUnconfirmedUpdateWaits(t *testing.T) {
	master := startConfirmed(t, 1, func(c *server.Config) { c.Sync.Timeout = patience })
	writer, reader := master.dial(), master.dial()
	writer.send("GET /rpc/set?key=a&value=1 HTTP/1.1\r\n\r\n")
	eventually(t, func() bool {
		_, body := master.dial().get("/rpc/report")
		return strings.Contains(body, "db_total_count\t1\n")
	})
	reader.send("GET /rpc/get?key=a HTTP/1.1\r\n\r\n")
	require.NoError(t, reader.SetReadDeadline(time.Now().Add(shortWait)))
	_, err := reader.in.ReadByte()
	require.Error(t, err, "a reader was answered before a follower had the update")
	require.NoError(t, reader.SetReadDeadline(time.Now().Add(patience)))
	startFollower(t, master, 2)
	for _, c := range []*client{writer, reader} {
		status, body := c.reply()
		require.Equal(t, 200, status, body)
	}
}

func TestDegradedUpdatesAreAnsweredAndThatIsShown(t *testing.T) {
	master := startConfirmed(t, 1, func(c *server.Config) { c.Sync.Timeout, c.Sync.Degrade = shortWait, true })
	c := master.dial()
	status, body := c.get("/rpc/set?key=a&value=1")
	require.Equal(t, 200, status, body)
	require.True(t, master.hasLine("[ERROR]: updates are answered without waiting for 1 follower"))
	rows := c.rows("/rpc/report")
	require.Equal(t, "degraded", rows["repl_sync_state"])
	require.Contains(t, rows["repl_sync_trouble"], "0 there, 1 missing")
	status, body = c.get("/rpc/set?key=a&value=2&REPLICAS=1")
	require.Equal(t, 503, status, "a client that asked for a follower was answered without one: "+body)
	startFollower(t, master, 2)
	eventually(t, func() bool { return master.hasLine("updates are answered when 1 follower") })
	eventually(t, func() bool { status, _ := c.get("/rpc/set?key=a&value=3&REPLICAS=1"); return status == 200 })
}

// hasLine reports whether a line of the log contains a text.
func (s *running) hasLine(text string) bool {
	for _, line := range s.log.lines() {
		if strings.Contains(line, text) {
			return true
		}
	}
	return false
}

func TestADatabaseAndARequestHaveTheirOwnNumber(t *testing.T) {
	master := startConfirmed(t, 0, func(c *server.Config) {
		c.Sync.Timeout = shortWait
		c.Databases = []string{":", ":#syncrep=1"}
	})
	c := master.dial()
	status, body := c.get("/rpc/set?DB=0&key=a&value=1")
	require.Equal(t, 200, status, body)
	status, body = c.get("/rpc/set?DB=1&key=a&value=1")
	require.Equal(t, 503, status, body)
	status, body = c.get("/rpc/set?DB=0&key=a&value=1&REPLICAS=1")
	require.Equal(t, 503, status, body)
	c.send("PUT /a HTTP/1.1\r\nX-Kt-Replicas: 1\r\nContent-Length: 1\r\n\r\nx")
	status, body = c.reply()
	require.Equal(t, 503, status, body)
	status, body = c.get("/rpc/set?DB=0&key=a&value=1")
	require.Equal(t, 200, status, body)
}

// What is sent instead of a reply that is not confirmed is for the client of that reply, also when
// another request has come behind it.
func TestAnUnconfirmedReplyToABrowser(t *testing.T) {
	c := startConfirmed(t, 0, func(c *server.Config) { c.Sync.Timeout = shortWait }).dial()
	const browsers = "Host: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\n"
	put := func(headers string) string {
		return "PUT /a HTTP/1.1\r\nX-Kt-Replicas: 1\r\n" + headers + "Content-Length: 1\r\n\r\nx"
	}
	c.send(put(browsers) + put("") + put(browsers))
	for _, want := range []string{"nosniff", "", "nosniff"} {
		r, err := http.ReadResponse(c.in, nil)
		require.NoError(t, err)
		_, err = io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Equal(t, 503, r.StatusCode)
		require.Equal(t, want, r.Header.Get("X-Content-Type-Options"))
	}
}

// After a restart nobody knows which updates were confirmed. A reader who asks for followers waits
// for all that the log had then; others are answered as the database is.
func TestAReadAfterARestartIsConfirmedWhereItAsks(t *testing.T) {
	dir := t.TempDir()
	run := func(required int) *running {
		return startConfirmed(t, required, func(c *server.Config) {
			c.UpdateLog, c.Databases, c.Sync.Timeout = filepath.Join(dir, "ulog"), []string{filepath.Join(dir, "a.kct")}, 50*time.Millisecond
		})
	}
	master := run(0)
	require.Equal(t, 200, master.status("/rpc/set?key=a&value=1"))
	require.Zero(t, master.stop())

	master = run(1)
	c := master.dial()
	require.Equal(t, "1", c.rows("/rpc/get?key=a")["value"])
	status, body := c.get("/rpc/get?key=a&REPLICAS=1")
	require.Equal(t, 503, status)
	require.Contains(t, body, "not confirmed by 1 follower")
	status, _ = c.get("/rpc/get?key=b&REPLICAS=1")
	require.Equal(t, 503, status, "a removal may be what is not confirmed")
	follower := t.TempDir()
	start(t, func(c *server.Config) {
		c.ServerID, c.RTSPath, c.Databases = 2, filepath.Join(follower, "rts"), []string{filepath.Join(follower, "a.kct")}
		c.MasterHost, c.MasterPort = "127.0.0.1", master.port()
	})
	require.NotEmpty(t, c.rows("/rpc/wait_replicas?timeout=30"))
	require.Equal(t, "1", c.rows("/rpc/get?key=a&REPLICAS=1")["value"])
}

func TestServersThatFollowEachOtherConfirmEachOther(t *testing.T) {
	dir := t.TempDir()
	var servers [2]*running
	for i := range servers {
		servers[i] = start(t, func(c *server.Config) {
			c.ServerID, c.RTSPath = i+1, filepath.Join(dir, fmt.Sprint("rts", i))
			c.UpdateLog, c.Sync.Replicas = filepath.Join(dir, fmt.Sprint("ulog", i)), 1
		})
	}
	for i, s := range servers {
		status, body := s.dial().get(fmt.Sprintf("/rpc/tune_replication?host=127.0.0.1&port=%d", servers[1-i].port()))
		require.Equal(t, 200, status, body)
	}
	for n := range 50 {
		for i, s := range servers {
			status, body := s.dial().get(fmt.Sprintf("/rpc/set?key=%d-%d&value=x", i, n))
			require.Equal(t, 200, status, body)
			status, body = servers[1-i].dial().get(fmt.Sprintf("/rpc/get?key=%d-%d", i, n))
			require.Equal(t, 200, status, body)
		}
	}
}

func TestSyncReplicasNeedsAnUpdateLog(t *testing.T) {
	var stderr buffer
	cfg := server.DefaultConfig()
	cfg.Sync.Replicas = 1
	require.Equal(t, 1, server.Run(t.Context(), cfg, &stderr, &stderr))
	require.Contains(t, strings.Join(stderr.lines(), "\n"), "-sync-replicas: followers are fed from an update log")
}

func TestWaitReplicasSaysHowManyHaveIt(t *testing.T) {
	master := startConfirmed(t, 0, nil)
	c := master.dial()
	c.get("/rpc/set?key=a&value=1")
	status, body := c.get("/rpc/wait_replicas?timeout=0.05")
	require.Equal(t, 503, status)
	require.Contains(t, body, "0 of 1 followers have everything up to ts=")
	startFollower(t, master, 2)
	require.Equal(t, "1", c.rows("/rpc/wait_replicas?timeout=30")["replicas"])
	startFollower(t, master, 3)
	rows := c.rows("/rpc/wait_replicas?replicas=2&timeout=30")
	require.Equal(t, "2", rows["replicas"])
	status, body = c.get("/rpc/wait_replicas?replicas=3&timeout=0&ts=" + rows["ts"])
	require.Equal(t, 503, status)
	require.Contains(t, body, "2 of 3 followers")
}

func TestAReadOnAFollowerWaitsForAPosition(t *testing.T) {
	master := startConfirmed(t, 0, nil)
	follower := startFollower(t, master, 2)
	c, f := master.dial(), follower.dial()
	for i := range 200 {
		c.send(fmt.Sprintf("PUT /k HTTP/1.1\r\nX-Kt-Position: ?\r\nContent-Length: 3\r\n\r\n%03d", i))
		r, err := http.ReadResponse(c.in, nil)
		require.NoError(t, err)
		at := r.Header.Get("X-Kt-Position")
		require.NotEmpty(t, at)
		f.send("GET /k HTTP/1.1\r\nX-Kt-Position: " + at + " 30\r\n\r\n")
		status, body := f.reply()
		require.Equal(t, 200, status, body)
		require.Equal(t, fmt.Sprintf("%03d", i), body)
	}
	at := c.rows("/rpc/set?key=k&value=x&POSITION=%3F")["POSITION"]
	require.Equal(t, "x", f.rows("/rpc/get?key=k&POSITION=" + at)["value"])
	ahead, err := strconv.ParseUint(at, 10, 64)
	require.NoError(t, err)
	f.send(fmt.Sprintf("GET /k HTTP/1.1\r\nX-Kt-Position: %d 0.05\r\n\r\n", ahead+1e12))
	status, body := f.reply()
	require.Equal(t, 503, status, body)
	require.Contains(t, body, "has not been reached within 50ms: this server has its master's log up to")
	status, body = c.get(fmt.Sprintf("/rpc/get?key=k&POSITION=%d", ahead+1e12))
	require.Equal(t, 503, status)
	require.Contains(t, body, "has not been reached: this server has its own log up to")
	status, body = c.get("/rpc/get?key=k&POSITION=x")
	require.Equal(t, 400, status)
	require.Contains(t, body, `"x" is no position: X-Kt-Position or POSITION is ?, or STAMP [SECONDS]`)
}

// TestAStopConfirmsWhatIsUnderWay stops a master while clients write: no update may be answered
// with an error only because the stop has ended the streams before their acknowledgements.
func TestAStopConfirmsWhatIsUnderWay(t *testing.T) {
	master := startConfirmed(t, 1, nil)
	startFollower(t, master, 2)
	begun := make(chan struct{}, 1000)
	failed := make(chan string, 64)
	var all sync.WaitGroup
	for w := range 16 {
		c := master.dial()
		all.Go(func() {
			for n := 0; ; n++ {
				if _, err := fmt.Fprintf(c, "GET /rpc/set?key=%d-%d&value=x HTTP/1.1\r\n\r\n", w, n); err != nil {
					return
				}
				r, err := http.ReadResponse(c.in, nil)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				if r.StatusCode != 200 {
					failed <- r.Status
					return
				}
				select {
				case begun <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 500 {
		<-begun
	}
	require.Zero(t, master.stop())
	all.Wait()
	require.Empty(t, failed)
}

// TestAFollowerThatMayTakeOverAnswersReaders: members of a cluster have the same options. Nobody
// follows the standby, so what it has from its master must not wait for followers of its own.
func TestAFollowerThatMayTakeOverAnswersReaders(t *testing.T) {
	dir := t.TempDir()
	master := startConfirmed(t, 1, nil)
	standby := start(t, func(c *server.Config) {
		c.UpdateLog, c.ServerID, c.RTSPath = filepath.Join(dir, "ulog"), 2, filepath.Join(dir, "rts")
		c.MasterHost, c.MasterPort = "127.0.0.1", master.port()
		c.Replication.ReadOnly = true
		c.Sync = server.SyncConfig{Replicas: 1, Timeout: patience}
	})
	c, s := master.dial(), standby.dial()
	for i := range 50 {
		status, body := c.get(fmt.Sprintf("/rpc/set?key=%d&value=x", i))
		require.Equal(t, 200, status, body)
		require.NoError(t, s.SetReadDeadline(time.Now().Add(patience/2)))
		status, body = s.get(fmt.Sprintf("/rpc/get?key=%d", i))
		require.Equal(t, 200, status, body)
	}
	require.Equal(t, "confirming", s.rows("/rpc/report")["repl_sync_state"])
}
