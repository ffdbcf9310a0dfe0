package crash

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/compat/ktproc"
)

const (
	bigEnv         = "GOTYCOON_BIG"
	bigRecords     = 5_000_000
	bigConns       = 20
	bigRounds      = 2
	bigCompressors = "GOTYCOON_BIG_COMPRESSORS" // default: all but lzma, which takes minutes
)

// TestSnapshotOfMillions measures snapshots of five million records while twenty connections write:
// the longest waits of the writers with and without a snapshot in progress, the time of a snapshot,
// and the time of a start that loads it.
func TestSnapshotOfMillions(t *testing.T) {
	if os.Getenv(bigEnv) == "" {
		t.Skipf("takes minutes: set %s=1", bigEnv)
	}
	compressors := "none zlib lzo zstd s2"
	if s := os.Getenv(bigCompressors); s != "" {
		compressors = s
	}
	bin := ktproc.BuildPlain(t, "ktserver")
	for compressor := range strings.FieldsSeq(compressors) {
		t.Run(compressor, func(t *testing.T) { measureSnapshot(t, bin, compressor, number(t, bigEnv+"_RECORDS", bigRecords)) })
	}
}

func measureSnapshot(t *testing.T, bin, compressor string, records int) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bgs"), 0o755))
	o := ktproc.Options{Bin: bin, Dir: dir, DBs: []string{":"},
		Args: []string{"-ls", "-bgs", "bgs", "-bgsc", compressor, "-bgsi", "30", "-ulog", "ul", "-sid", "1"}}
	server := ktproc.Start(t, o)
	fill(t, server.Addr(), records)
	idle := memoryOf(t, server.PID())
	m := &meter{tmp: filepath.Join(dir, "bgs", "00000000.ktss.tmp"), records: records, pid: server.PID()}
	m.run(t, server.Addr())
	stopped := time.Now()
	server.Stop(t)
	took := time.Since(stopped)
	info, err := os.Stat(filepath.Join(dir, "bgs", "00000000.ktss"))
	require.NoError(t, err)
	started := time.Now()
	server = ktproc.Start(t, o)
	restored := time.Since(started)
	server.Kill()
	t.Logf("%s: %d records, %d bytes (%.1f a record)", compressor, records, info.Size(), float64(info.Size())/float64(records))
	t.Logf("while clients write: %.1f s; at the end: %.1f s, %.0f records/s; restored in %.1f s, %.0f records/s", m.took.Seconds(), took.Seconds(),
		float64(records)/took.Seconds(), restored.Seconds(), float64(records)/restored.Seconds())
	t.Logf("memory: %d MiB before, %d MiB at most during a snapshot", idle>>20, m.memory>>20)
	for _, quantile := range []float64{0.5, 0.99, 0.999, 0.9999} {
		t.Logf("p%v: %v without, %v during a snapshot", 100*quantile, at(m.without, quantile), at(m.during, quantile))
	}
	t.Logf("updates: %d without, %d during", len(m.without), len(m.during))
}

// fill stores records of 100 bytes.
func fill(t *testing.T, addr string, records int) {
	t.Helper()
	c, err := dial(addr)
	require.NoError(t, err)
	defer c.Close()
	const bulk = 2000
	value := strings.Repeat("v", 40)
	for i := 0; i < records; i += bulk {
		changes := make([]change, bulk)
		for j := range changes {
			changes[j] = change{key: bigKey(i + j), value: fmt.Sprintf("%s%045d", value, rand.Uint64())}
		}
		_, err := c.Write(setBulk(0, changes))
		require.NoError(t, err)
		require.NoError(t, c.readReply(frame.SetBulk))
	}
}

func bigKey(i int) string { return fmt.Sprintf("user:%010d", i) }

// meter is the writers and what they have met.
type meter struct {
	tmp     string
	records int
	pid     int

	active  atomic.Bool // a snapshot is under way
	ended   atomic.Bool
	mu      sync.Mutex
	without []time.Duration
	during  []time.Duration
	took    time.Duration // by the last snapshot
	memory  int64
}

// run writes until bigRounds snapshots have been taken.
func (m *meter) run(t *testing.T, addr string) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, bigConns)
	for i := range bigConns {
		wg.Go(func() { errs[i] = m.write(addr, uint64(i)) })
	}
	deadline := time.Now().Add(20 * time.Minute)
	for rounds := 0; rounds < bigRounds && time.Now().Before(deadline); {
		_, err := os.Stat(m.tmp)
		switch now := err == nil; {
		case now && !m.active.Load():
			m.took = -time.Duration(time.Now().UnixNano())
			m.active.Store(true)
		case !now && m.active.Load():
			m.active.Store(false)
			m.took += time.Duration(time.Now().UnixNano())
			rounds++
		case now:
			m.memory = max(m.memory, memoryOf(t, m.pid))
		}
		time.Sleep(2 * time.Millisecond) //lint:sleep samples
	}
	m.ended.Store(true)
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	slices.Sort(m.without)
	slices.Sort(m.during)
}

// write sets single records, one after the other.
func (m *meter) write(addr string, seed uint64) error {
	c, err := dial(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	rng := rand.New(rand.NewPCG(seed, 1))
	var without, during []time.Duration
	value := []byte(strings.Repeat("w", 85))
	for !m.ended.Load() {
		binary.BigEndian.PutUint64(value, rng.Uint64())
		request := setBulk(0, []change{{key: bigKey(rng.IntN(m.records)), value: string(value)}})
		before, start := m.active.Load(), time.Now()
		if _, err := c.Write(request); err != nil {
			return err
		}
		if err := c.readReply(frame.SetBulk); err != nil {
			return err
		}
		if took := time.Since(start); before || m.active.Load() {
			during = append(during, took)
		} else {
			without = append(without, took)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.without, m.during = append(m.without, without...), append(m.during, during...)
	return nil
}

// at is a quantile.
func at(sorted []time.Duration, quantile float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(quantile*float64(len(sorted))))].Round(time.Microsecond)
}

// memoryOf is what a process has in memory.
func memoryOf(t *testing.T, pid int) int64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	require.NoError(t, err)
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}
