package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gotycoon/internal/needs"
)

const (
	// FIFREEZE and FITHAW of linux/fs.h: a file system that is frozen answers no write and no fsync.
	freezeRequest = 0xc0045877
	thawRequest   = 0xc0045878
)

// mountImage mounts a file system of its own at a directory, which can be filled and frozen. It
// reports whether the test may do that here.
func mountImage(t *testing.T, dir string) bool {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	if os.WriteFile(image, nil, 0o600) != nil || os.Truncate(image, diskBytes) != nil ||
		exec.Command("mkfs.ext4", "-q", "-F", image).Run() != nil || exec.Command("mount", "-o", "loop", image, dir).Run() != nil {
		return false
	}
	t.Cleanup(func() {
		if text, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, text)
		}
	})
	return true
}

// freeze has the member's disk hang until goOn is called.
func (m *member) freeze() (goOn func(), err error) {
	d, err := os.Open(m.dir)
	if err != nil {
		return nil, err
	}
	if err := unix.IoctlSetInt(int(d.Fd()), freezeRequest, 0); err != nil {
		d.Close()
		return nil, err
	}
	thaw := sync.OnceFunc(func() {
		if err := unix.IoctlSetInt(int(d.Fd()), thawRequest, 0); err != nil {
			m.cluster.t.Error(err)
		}
		d.Close()
	})
	m.cluster.t.Cleanup(thaw) // a process that waits for a frozen disk cannot even be killed
	return thaw, nil
}

// slow has the member's disk hang for moments, again and again, until it is mended.
func (m *member) slow(each, pause time.Duration) (mend func()) {
	quit := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			goOn, err := m.freeze()
			if err != nil {
				return
			}
			select {
			case <-quit:
			case <-time.After(each):
			}
			goOn()
			select {
			case <-quit:
				return
			case <-time.After(pause):
			}
		}
	})
	return sync.OnceFunc(func() {
		close(quit)
		ended.Wait()
	})
}

// hangs has the disk of a member hang, which counts as paused: nothing else happens to it.
func (s *stage) hangs(slow bool) func() {
	m := s.any()
	if m == nil || !m.own {
		return nil
	}
	var mend func()
	if slow {
		mend = m.slow(ms(50+s.rnd.IntN(400)), ms(10+s.rnd.IntN(50)))
	} else {
		var err error
		if mend, err = m.freeze(); err != nil {
			s.t.Log(err)
			return nil
		}
	}
	s.paused[m] = true
	return func() {
		mend()
		delete(s.paused, m)
	}
}

// TestHungDisk: when the disk of the primary hangs, another member takes over, and nothing is lost
// or acknowledged twice.
func TestHungDisk(t *testing.T) {
	needs.Program(t, "e2fsprogs", "mkfs.ext4")
	together(t)
	c := prepareCluster(t, 3, false)
	for _, m := range c.members {
		if !m.own && !mountImage(t, m.dir) {
			t.Skip("a file system that can be frozen (mount -o loop) cannot be mounted here")
		}
		m.own = true
	}
	c.begin()
	play := start(c, "hung", seed(t))
	defer play.end()
	play.serves(t)
	for range rounds(t, 1) {
		former := c.settled(t, c.members...)
		goOn, err := former.freeze()
		require.NoError(t, err)
		begun := time.Now()
		require.True(t, eventually(patience, func() bool { return play.probe.since(begun) && play.primary() != former }), "no other member takes over")
		t.Logf("another member has taken over %v after the disk began to hang, for which -disk-timeout is %v", time.Since(begun).Round(ms(1)), diskTimeout)
		goOn()
		c.settled(t, c.members...)
	}
	play.end()
	judge(t, c, play, &tally{})
}
