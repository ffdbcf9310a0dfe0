package server_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/procinfo"
	"gotycoon/server"
)

// smallDisk is a file system of its own with a number of MiB.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	dir := t.TempDir()
	if text, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm", mib), "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("a file system of a test's own needs root: %s", text)
	}
	t.Cleanup(func() { require.NoError(t, exec.Command("umount", "-l", dir).Run()) })
	return dir
}

// put stores a record and returns status and body.
func (c *client) put(key string, value []byte) (status int, body string) {
	c.t.Helper()
	c.send(fmt.Sprintf("PUT /%s HTTP/1.1\r\nContent-Length: %d\r\n\r\n", key, len(value)))
	_, err := c.Write(value)
	require.NoError(c.t, err)
	return c.reply()
}

func (s *running) says(text string) bool {
	return slices.ContainsFunc(s.log.lines(), func(line string) bool { return strings.Contains(line, text) })
}

// Clients fill the disk: updates are refused, everything acknowledged is there, removals make
// space, and the server goes on.
func TestDiskFilledAndEmptiedUnderLoad(t *testing.T) {
	dir := smallDisk(t, 96)
	change := func(c *server.Config) { c.Databases = []string{filepath.Join(dir, "a.kct")} }
	s := start(t, change)
	const writers = 4
	var mu sync.Mutex
	acknowledged := map[string]byte{}
	var wg sync.WaitGroup
	for w := range writers {
		c := s.dial()
		wg.Go(func() {
			for n := 0; ; n++ {
				key := fmt.Sprintf("%d-%d", w, n)
				status, _ := c.put(key, bytes.Repeat([]byte{byte(n)}, 40<<10))
				if status == 507 {
					return
				}
				if !(status == 201) {
					panic(status)
				}
				mu.Lock()
				acknowledged[key] = byte(n)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Greater(t, len(acknowledged), 100)
	eventually(t, func() bool { return s.says("no space: updates are refused") })

	c := s.dial()
	status, body := c.get("/rpc/set?key=x&value=" + strings.Repeat("y", 1<<10))
	if status != 200 { // files have been written meanwhile, otherwise
		require.Equal(t, 500, status)
		require.Contains(t, body, "no space: the disk is nearly full")
	}
	for key, value := range acknowledged {
		status, body := c.get("/" + key)
		require.Equal(t, 200, status)
		require.Equal(t, bytes.Repeat([]byte{value}, 40<<10), []byte(body))
	}
	kept := ""
	for key := range acknowledged {
		if kept == "" {
			kept = key
			continue
		}
		status, body := c.get("/rpc/remove?key=" + key)
		require.Equal(t, 200, status, body)
	}
	eventually(t, func() bool { return s.says("alarm disk is over") })
	require.Eventually(t, func() bool { status, _ := c.put("new", []byte("value")); return status == 201 }, patience, 20*time.Millisecond)
	require.Zero(t, s.stop())

	c = start(t, change).dial()
	status, body = c.get("/" + kept)
	require.Equal(t, 200, status)
	require.Equal(t, bytes.Repeat([]byte{acknowledged[kept]}, 40<<10), []byte(body))
	status, body = c.get("/new")
	require.Equal(t, 200, status)
	require.Equal(t, "value", body)
}

// Another program fills the disk under an update log, and removes its files again.
func TestDiskFilledBySomebodyElse(t *testing.T) {
	dir := smallDisk(t, 64)
	ulog := filepath.Join(dir, "ulog")
	s, addr := startAdmin(t, func(c *server.Config) { c.UpdateLog, c.ServerID = ulog, 1 })
	ready(t, addr)
	requireRoom(t, addr, "disk", false)
	c := s.dial()
	status, _ := c.put("a", []byte("1"))
	require.Equal(t, 201, status)
	filler := filepath.Join(dir, "filler")
	require.NoError(t, os.WriteFile(filler, make([]byte, 61<<20), 0o600))
	var body string
	require.Eventually(t, func() bool { status, body = c.put("b", []byte("2")); return status == 507 }, patience, 10*time.Millisecond)
	require.Equal(t, "DB: 9: system error: no space: the disk is nearly full, only removals are possible\n", body)
	eventually(t, func() bool {
		return s.says("MiB are free in " + ulog + " (mounted on " + dir + "), and")
	})
	requireRoom(t, addr, "disk", true)
	status, text := fetch(t, addr, "/readyz")
	require.Equal(t, 503, status)
	require.Regexp(t, `no space: updates are refused, removals are taken: \d+ MiB are free in `+ulog+` \(mounted on `+dir+`\), and \d+ MiB are kept free \(-min-free.*\(since 20..-..-..T..:..:..Z\)`, text)
	status, _ = fetch(t, addr, "/readyz?reads")
	require.Equal(t, 200, status, "who only reads can go on")
	status, body = c.get("/rpc/increment?key=n&num=1")
	require.Equal(t, 500, status)
	require.Contains(t, body, "DB: 9: system error: no space: ")
	status, _ = c.get("/rpc/remove?key=a")
	require.Equal(t, 200, status)
	status, _ = c.get("/rpc/status")
	require.Equal(t, 200, status)
	require.NoError(t, os.Remove(filler))
	require.Eventually(t, func() bool { status, _ = c.put("b", []byte("3")); return status == 201 }, patience, 10*time.Millisecond)
	ready(t, addr)
	requireRoom(t, addr, "disk", false)
	require.Zero(t, s.stop())
	require.True(t, s.says("alarm disk is over"))
}

// requireRoom checks what the metrics say about updates that are refused.
func requireRoom(t *testing.T, addr, reason string, refusing bool) {
	t.Helper()
	want := 0
	if refusing {
		want = 1
		requireRefused(t, addr, reason)
	}
	_, text := fetch(t, addr, "/metrics")
	require.True(t, strings.Contains(text, fmt.Sprintf("gotycoon_updates_refusing{reason=%q} %d\n", reason, want)))
}

// requireRefused checks that the metrics have counted updates that were refused.
func requireRefused(t *testing.T, addr, reason string) {
	t.Helper()
	_, text := fetch(t, addr, "/metrics")
	require.False(t, strings.Contains(text, fmt.Sprintf("gotycoon_updates_refused_total{reason=%q} 0\n", reason)))
}

func TestDatabasesReachTheirSize(t *testing.T) {
	s, addr := startAdmin(t, func(c *server.Config) { c.Limits.MaxSize = 4 << 20 })
	ready(t, addr)
	fillAndEmpty(t, s, "the databases have reached their size", func() {
		requireRoom(t, addr, "size", true)
		status, text := fetch(t, addr, "/readyz")
		require.Equal(t, 503, status)
		require.Contains(t, text, "-max-size")
		row := s.ask("/rpc/report")["alarm_size"]
		require.Equal(t, row+"\n", text, "the same words everywhere")
		_, figures := fetch(t, addr, "/metrics")
		require.InDelta(t, 1, sample(t, figures, `gotycoon_alarm{alarm="size"}`), 0)
		require.InDelta(t, time.Now().Unix(), sample(t, figures, `gotycoon_alarm_since_timestamp_seconds{alarm="size"}`), 60)
		require.InDelta(t, 0, sample(t, figures, `gotycoon_alarm{alarm="disk"}`), 0)
		_, about := fetch(t, addr, "/api/server")
		require.Contains(t, about, `"alarms":[{"name":"size","text":"the databases have reached their size: `)
	})
	eventually(t, func() bool { return s.says("alarm size is over") })
}

func TestMemoryIsUsedUp(t *testing.T) {
	debug.FreeOSMemory() // what earlier tests have left
	s, addr := startAdmin(t, func(c *server.Config) { c.Limits.Memory = procinfo.Anonymous() + 256<<20 })
	ready(t, addr)
	fillAndEmpty(t, s, "the memory is used up", func() {
		requireRefused(t, addr, "memory") // Go may have given memory back since
	})
}

// fillAndEmpty stores records until they are refused, checks what the server says, removes the
// records, and stores again.
func fillAndEmpty(t *testing.T, s *running, why string, look func()) {
	t.Helper()
	c := s.dial()
	stored, most := 0, 20_000
	for ; ; stored++ {
		require.Less(t, stored, most)
		status, body := c.put(fmt.Sprint(stored), bytes.Repeat([]byte("x"), 60<<10))
		if status == 507 {
			break
		}
		require.Equal(t, 201, status, body)
	}
	eventually(t, func() bool { return s.says(why) })
	look()
	status, _ := c.get("/0")
	require.Equal(t, 200, status)
	for n := range stored {
		status, body := c.get(fmt.Sprintf("/rpc/remove?key=%d", n))
		require.Equal(t, 200, status, body)
	}
	require.Eventually(t, func() bool { status, _ := c.put("a", []byte("b")); return status == 201 }, patience, 10*time.Millisecond)
}
