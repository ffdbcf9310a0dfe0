package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
)

const (
	shortKills = 8 // of the default test run, over all modes
	shortWork  = 600 * time.Millisecond
	longKills  = "GOTYCOON_CRASH"
	seedEnv    = "GOTYCOON_CRASH_SEED"
)

// TestKill kills servers while clients set, remove, clear and checkpoint. The number of kills can
// be given in the environment (GOTYCOON_CRASH=200), and the seed of a run that has failed
// (GOTYCOON_CRASH_SEED).
func TestKill(t *testing.T) {
	modes := []struct {
		ext, log string
		each     bool // -oas
	}{{"kct", "", false}, {"kch", "", false}, {"kct", "ul", true}, {"kch", "ul", false}}
	bin := ktproc.BuildPlain(t, "ktserver")
	kills := number(t, longKills, shortKills) / len(modes)
	seed := number(t, seedEnv, int(time.Now().UnixNano()))
	for i, mode := range modes {
		name := mode.ext + " with private logs"
		if mode.log != "" {
			name = mode.ext + " with -ulog"
		}
		if mode.each {
			name += " and -oas"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Logf("%s=%d", seedEnv, seed)
			v := newVictim(t, bin, mode.ext, mode.log, rand.New(rand.NewPCG(uint64(seed), uint64(i))))
			if mode.each {
				v.opts.Args = append(v.opts.Args, "-oas")
			}
			v.killRepeatedly(t, max(kills, 1))
		})
	}
}

// number is an environment variable, or a default.
func number(t *testing.T, env string, otherwise int) int {
	t.Helper()
	text, ok := os.LookupEnv(env)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, env)
	return n
}

// victim is a server that is killed and started again in one directory, with clients that remember
// their updates.
type victim struct {
	opts    ktproc.Options
	logDir  string // empty without -ulog
	workers []*worker
	rng     *rand.Rand
	work    time.Duration // at most, until a kill
}

func newVictim(t *testing.T, bin, ext, log string, rng *rand.Rand) *victim {
	v := &victim{rng: rng, work: shortWork, opts: ktproc.Options{
		Bin:  bin,
		Dir:  t.TempDir(),
		Args: []string{"-ls", "-checkpoint", "64k"},
		DBs:  []string{"main." + ext, "cleared." + ext},
	}}
	if log != "" {
		v.logDir = filepath.Join(v.opts.Dir, log)
		v.opts.Args = append(v.opts.Args, "-ulog", log, "-sid", "7", "-ulim", "1m")
	}
	v.hire("single0", 0, singles)
	v.hire("single1", 0, singles)
	v.hire("bulk", 0, bulks)
	v.hire("atomic0", 0, atomics)
	v.hire("atomic1", 0, atomics)
	v.hire("clear", 1, clears)
	v.hire("sync", 0, syncs)
	v.hire("compact", 0, compacts)
	return v
}

func (v *victim) hire(prefix string, dbidx uint16, make func(*worker) request) {
	rng := rand.New(rand.NewPCG(v.rng.Uint64(), v.rng.Uint64()))
	v.workers = append(v.workers, &worker{prefix: prefix, dbidx: dbidx, make: make, rng: rng})
}

func (v *victim) killRepeatedly(t *testing.T, kills int) {
	updates := 0
	for range kills {
		if v.rng.IntN(4) == 0 {
			v.killDuringStart(t)
		}
		server := ktproc.Start(t, v.opts)
		v.verify(t, server)
		v.killDuringWork(t, server)
		for _, w := range v.workers {
			updates += w.acked
		}
	}
	v.stopWell(t)
	t.Logf("%d kills, %d acknowledged updates", kills, updates)
}

// killDuringStart kills a server that may be just about to repair what the last kill has left.
func (v *victim) killDuringStart(t *testing.T) {
	t.Helper()
	server := ktproc.Launch(t, v.opts, freeport.Take(t))
	time.Sleep(v.random(40 * time.Millisecond)) //lint:sleep the moment of the kill is meant to be random
	server.Kill()
}

// killDuringWork lets the clients work and kills the server at a random moment.
func (v *victim) killDuringWork(t *testing.T, server *ktproc.Server) {
	t.Helper()
	var killed atomic.Bool
	var wg sync.WaitGroup
	failures := make([]error, len(v.workers))
	for i, w := range v.workers {
		wg.Go(func() { failures[i] = w.run(server.Addr(), &killed) })
	}
	time.Sleep(v.random(v.work)) //lint:sleep the moment of the kill is meant to be random
	killed.Store(true)
	server.Kill()
	wg.Wait()
	require.NoError(t, errors.Join(failures...), server.Output())
}

func (v *victim) random(limit time.Duration) time.Duration {
	return time.Duration(v.rng.Int64N(int64(limit)))
}

// verify compares the databases with what the clients know.
func (v *victim) verify(t *testing.T, server *ktproc.Server) {
	t.Helper()
	parts := map[string]map[string]string{}
	for dbidx := range v.opts.DBs {
		records, count, err := dump(server.Addr(), dbidx)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(len(records)), count, "count of database %d", dbidx)
		for key, value := range records {
			part := fmt.Sprintf("%d/%s", dbidx, prefixOf(key))
			if parts[part] == nil {
				parts[part] = map[string]string{}
			}
			parts[part][key] = value
		}
	}
	for _, w := range v.workers {
		part := fmt.Sprintf("%d/%s", w.dbidx, w.prefix)
		require.NoError(t, w.verify(parts[part]), "client %s", w.prefix)
		delete(parts, part)
	}
	require.Empty(t, parts, "records that nobody has stored")
}

func prefixOf(key string) string {
	prefix, _, _ := strings.Cut(key, "-")
	return prefix
}

// stopWell ends the sequence with a stop as it should be, after which everything is still there.
func (v *victim) stopWell(t *testing.T) {
	t.Helper()
	for range 2 {
		server := ktproc.Start(t, v.opts)
		v.verify(t, server)
		server.Stop(t)
	}
	if v.logDir != "" {
		v.verifyLog(t)
	}
}
