package server_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	ktclient "gotycoon/client"
	"gotycoon/internal/vfs"
	"gotycoon/server"
)

// noNotes is a disk on which the first note that a term has begun fails, as do all later ones: for
// the next process, this one died there.
type noNotes struct {
	vfs.FS
	failed chan struct{} // gets an element for each note
}

func (d noNotes) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	if strings.HasPrefix(filepath.Base(name), "begun") && flag&os.O_CREATE != 0 {
		select {
		case d.failed <- struct{}{}:
		default:
		}
		return nil, os.ErrPermission
	}
	return d.FS.OpenFile(name, flag, perm)
}

// A member that is elected, writes the first update of its term and dies before it notes that it has
// begun: nothing that was acknowledged is lost, the others go on, and the update is put aside.
func TestAPrimaryDiesBetweenItsFirstUpdateAndItsNote(t *testing.T) {
	c := startElected(t, 3)
	p := c.primary()
	f := (p + 1) % 3
	require.Equal(t, 200, c.servers[p].status("/rpc/set?key=before&value=1"))
	for i := range c.servers {
		c.holds(i, "before")
	}
	c.stop(f)
	failed := make(chan struct{}, 1)
	c.servers[f] = start(t, func(cfg *server.Config) {
		c.configure(cfg, f)
		cfg.FS = noNotes{c.disks[f], failed}
	})
	require.Equal(t, p, c.primary())
	c.holds(f, "before")
	order := make(chan error, 1)
	go func() {
		order <- c.client(p).ChangeCluster(context.Background(), ktclient.ClusterChange{Do: "switchover", Name: c.addrs[f]})
	}()
	<-failed
	require.NotEqual(t, 200, c.servers[f].status("/rpc/set?key=never&value=1"))
	c.stop(f)
	next := c.primary()
	require.NotEqual(t, f, next)
	require.Equal(t, 200, c.servers[next].status("/rpc/set?key=after&value=1"))
	c.start(f)
	c.primary()
	for i := range c.servers {
		c.holds(i, "before", "after")
		require.NotEqual(t, 200, c.servers[i].status("/rpc/get?key=never"))
	}
	dirs, err := filepath.Glob(filepath.Join(c.dir, fmt.Sprint(f), "cluster", "aside-*"))
	require.NoError(t, err)
	require.Len(t, dirs, 1, "the claim is put aside")
	<-order // whatever the former primary has said
}
