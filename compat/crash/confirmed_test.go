package crash

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
)

// TestConfirmedUpdatesSurviveTheMaster kills a master with -sync-replicas 1 while clients write,
// and while its two followers are paused in turns. Every update that was acknowledged must be on
// one of the followers, although the machine of the master never comes back.
func TestConfirmedUpdatesSurviveTheMaster(t *testing.T) {
	const rounds, writers = 3, 16
	bin := ktproc.BuildPlain(t, "ktserver")
	for range rounds {
		dir := t.TempDir()
		master := ktproc.Start(t, ktproc.Options{
			Bin: bin, Dir: dir, DBs: []string{filepath.Join(dir, "m.kct")},
			Args: []string{"-le", "-ulog", filepath.Join(dir, "ulog"), "-sid", "1", "-sync-replicas", "1", "-sync-timeout", "20"},
		})
		var followers []*ktproc.Server
		for sid := 2; sid <= 3; sid++ {
			followers = append(followers, ktproc.Start(t, ktproc.Options{
				Bin: bin, Dir: dir, DBs: []string{filepath.Join(dir, fmt.Sprint(sid, ".kct"))},
				Args: []string{"-le", "-sid", strconv.Itoa(sid), "-rts", filepath.Join(dir, fmt.Sprint(sid, ".rts")),
					"-mhost", "127.0.0.1", "-mport", strconv.Itoa(master.Port)},
			}))
		}
		var acknowledged [writers]atomic.Int64
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				c, err := dial(master.Addr())
				if err != nil {
					return
				}
				defer c.Close()
				for n := int64(0); ; n++ {
					_, err := fmt.Fprintf(c, "GET /rpc/set?key=%d-%d&value=x HTTP/1.1\r\n\r\n", w, n)
					if err == nil {
						_, err = c.readHTTP(http.StatusOK)
					}
					if err != nil {
						return
					}
					acknowledged[w].Store(n + 1)
				}
			})
		}
		total := func() (n int64) {
			for w := range acknowledged {
				n += acknowledged[w].Load()
			}
			return n
		}
		// Each pause lets the other follower confirm some updates that the paused one lacks.
		for turn := range 6 {
			paused := followers[turn%2]
			before := total()
			paused.Signal(t, syscall.SIGSTOP)
			require.Eventually(t, func() bool { return total() >= before+500 }, time.Minute, time.Millisecond,
				"no update is acknowledged while the other follower is there")
			if turn == 5 {
				master.Kill()
			}
			paused.Signal(t, syscall.SIGCONT)
		}
		all.Wait()
		lost := 0
		for w := range acknowledged {
			for n := range acknowledged[w].Load() {
				if !followerHas(t, followers, fmt.Sprintf("%d-%d", w, n)) {
					lost++
				}
			}
		}
		require.Zero(t, lost, "acknowledged updates are on no follower, of %d", total())
		for _, f := range followers {
			f.Kill()
		}
	}
}

// followerHas reports whether one of the servers has a record.
func followerHas(t *testing.T, followers []*ktproc.Server, key string) bool {
	t.Helper()
	for _, f := range followers {
		resp, err := http.Get("http://" + f.Addr() + "/" + key)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK && strings.TrimSpace(string(body)) == "x" {
			return true
		}
	}
	return false
}
