package quota

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/services/internal/servicetest"
)

// However often the server is killed while applies without ids form rounds: each that was answered
// has its journal, with its amount, and all journals together are what the quota has less than the
// limit.
func TestRoundsSurviveKills(t *testing.T) {
	const workers = 16
	lives, _ := servicetest.Kills(t, 4, 20)
	dir := t.TempDir()
	server := servicetest.StartChild(t, dir, 0)
	var granted sync.Map // journal number → amount
	var calls atomic.Int64
	for life := range lives {
		var done atomic.Bool
		var wait sync.WaitGroup
		for w := range workers {
			wait.Go(func() {
				var c servicetest.Caller
				defer c.Close()
				for amount := int64(1 + w); !done.Load(); {
					if body, ok := c.Call(server.Addr, fmt.Sprintf("/apply?amt=%d", amount)); ok {
						var journal, left int64
						_, err := fmt.Sscan(body, &journal, &left)
						if _, twice := granted.LoadOrStore(journal, amount); err != nil || twice && journal != 0 {
							t.Errorf("reply %q: %v, number given before: %v", body, err, twice)
							return
						}
						calls.Add(1)
					}
				}
			})
		}
		for target := int64(life+1) * 500; calls.Load() < target && !t.Failed(); {
			runtime.Gosched()
		}
		server.Kill()
		done.Store(true)
		wait.Wait()
		server = servicetest.StartChild(t, dir, 0)
	}
	checkJournals(t, server.Addr, filepath.Join(dir, "journals"), &granted)
	t.Logf("%d calls, %d kills", calls.Load(), lives)
}

// checkJournals has the quota at addr export its journals, and compares them with what clients were
// granted and with what the quota has left.
func checkJournals(t *testing.T, addr, export string, granted *sync.Map) {
	t.Helper()
	var c servicetest.Caller
	defer c.Close()
	body, ok := c.Call(addr, "/query")
	require.True(t, ok)
	var left, sum int64
	_, err := fmt.Sscan(body, &left)
	require.NoError(t, err)
	require.NoError(t, os.Remove(export))
	_, ok = c.Call(addr, "/empty")
	require.True(t, ok)
	servicetest.WaitFor(t, "the export", func() bool { _, err := os.Stat(export); return err == nil })
	f, err := os.Open(export)
	require.NoError(t, err)
	defer f.Close()
	exported := map[int64]int64{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var journal, amount int64
		_, err := fmt.Sscan(lines.Text(), &journal, &amount)
		require.NoError(t, err)
		exported[journal] = amount
		sum += amount
	}
	require.Equal(t, int64(crashLimit), left+sum)
	granted.Range(func(journal, amount any) bool {
		require.Equal(t, amount, exported[journal.(int64)], "journal %d", journal)
		return true
	})
}
