package server_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/vfs/faultfs"
	"gotycoon/server"
)

// updateFails sends an update to a member. The returned function requires that it is not
// acknowledged.
func (c *clusterOf) updateFails(i int, key string) (check func()) {
	k := c.servers[i].dial()
	_, err := k.Write([]byte("GET /rpc/set?value=1&key=" + key + " HTTP/1.1\r\nHost: x\r\n\r\n"))
	require.NoError(c.t, err)
	answer := make(chan string, 1)
	go func() {
		line, _ := k.in.ReadString('\n')
		answer <- line
	}()
	return func() {
		c.t.Helper()
		require.NotContains(c.t, <-answer, "200", "an update is acknowledged that no other member has")
	}
}

// A primary whose disk hangs hands over, also where the votes and the seals are on the same disk.
// What it had not written is acknowledged to nobody, also not when the disk goes on.
func TestAPrimaryWhoseDiskHangsIsReplaced(t *testing.T) {
	replaced(t, startElected(t, 3), (*faultfs.FS).Hang)
}

// The same where only fsync hangs, and updates wait for it (-oas).
func TestAPrimaryWhoseFsyncHangsIsReplaced(t *testing.T) {
	c := startElectedWith(t, func(cfg *server.Config) { cfg.SyncEach = true }, 3)
	replaced(t, c, func(disk *faultfs.FS) (goOn func()) {
		hung := make(chan struct{})
		disk.OnSync(func() { <-hung })
		return sync.OnceFunc(func() { close(hung) })
	})
}

func replaced(t *testing.T, c *clusterOf, hang func(disk *faultfs.FS) (goOn func())) {
	t.Helper()
	p := c.primary()
	status, body := c.servers[p].dial().get("/rpc/set?key=before&value=1")
	require.Equal(t, 200, status, body)
	for i := range c.servers { // a member that has not got its copy cannot take over
		c.holds(i, "before")
	}
	require.Equal(t, p, c.primary())
	goOn := hang(c.disks[p])
	t.Cleanup(goOn)
	check := c.updateFails(p, "lost")
	next := -1
	eventually(t, func() bool {
		for i := range c.servers {
			if i != p && c.servers[i].status("/rpc/set?key=after&value=1") == 200 {
				next = i
			}
		}
		return next >= 0
	})
	said := c.servers[p].ask("/rpc/cluster_status")[c.addrs[p]]
	require.True(t, strings.HasPrefix(said, "role=waiting"), said)
	require.Contains(t, said, "has done nothing for")
	require.NotEqual(t, 200, c.servers[p].status("/rpc/set?key=late&value=1"))
	require.Contains(t, strings.Join(c.servers[p].log.lines(), "\n"), "steps down as the primary: its disk has done nothing")
	goOn()
	check()
	eventually(t, func() bool { return c.roles()[p] == "following" })
	c.holds(p, "before", "after")
	dirs, err := filepath.Glob(filepath.Join(c.dir, fmt.Sprint(p), "cluster", "aside-*"))
	require.NoError(t, err)
	require.Len(t, dirs, 1, "the update was put aside")
	for i := range c.servers {
		require.NotEqual(t, 200, c.servers[i].status("/rpc/get?key=lost"))
	}
}

func TestAFollowerWhoseDiskHangsStopsNobody(t *testing.T) {
	c := startElected(t, 3)
	p := c.primary()
	f := (p + 1) % 3
	goOn := c.disks[f].Hang()
	t.Cleanup(goOn)
	k := c.servers[p].dial()
	begun := time.Now()
	for time.Since(begun) < diskTimeout*3/2 { // longer than the disk of a primary may do nothing
		status, body := k.get("/rpc/set?key=a&value=1")
		require.Equal(t, 200, status, body)
	}
	require.Contains(t, c.servers[p].ask("/rpc/cluster_status")[c.addrs[f]], "the disk of "+c.addrs[f]+" has done nothing for")
	goOn()
	c.holds(f, "a")
	require.Equal(t, p, c.primary())
}

// Two of three members cannot do without the primary's disk if a third one is gone: then the
// primary waits for its disk, and answers what it has been asked.
func TestAPrimaryWhoseDiskHangsWaitsWhereNobodyCanTakeOver(t *testing.T) {
	c := startElected(t, 3)
	p := c.primary()
	c.stop((p + 1) % 3)
	goOn := c.disks[p].Hang()
	t.Cleanup(goOn)
	k := c.servers[p].dial()
	answer := make(chan int, 1)
	go func() {
		status, _ := k.get("/rpc/set?key=a&value=1")
		answer <- status
	}()
	eventually(t, func() bool {
		return strings.Contains(strings.Join(c.servers[p].log.lines(), "\n"), "it cannot hand over")
	})
	goOn()
	require.Equal(t, 200, <-answer)
	require.Equal(t, p, c.primary())
}
