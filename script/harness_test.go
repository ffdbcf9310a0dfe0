package script_test

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/db"
	"gotycoon/internal/klog"
	"gotycoon/internal/klog/klogtest"
	"gotycoon/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for something that should happen at once.
const patience = 30 * time.Second

// logs is a log that can be read while it is written.
type logs = klogtest.Buffer

// host is databases with a script.
type host struct {
	t       *testing.T
	catalog *db.Catalog
	pool    *script.Pool
	log     *logs
}

// start runs a script on two databases in memory, a tree and a hash, and in two interpreters.
func start(t *testing.T, source string, change ...func(o *script.Options)) *host {
	t.Helper()
	h := &host{t: t, log: new(logs)}
	var err error
	h.catalog, err = db.Open([]string{"%", "*"}, db.Options{})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "test.lua")
	require.NoError(t, os.WriteFile(path, []byte(source), 0o600))
	o := script.Options{Path: path, Catalog: h.catalog.View, Workers: 2,
		Logger: slog.New(klog.NewHandler(h.log, slog.LevelDebug))}
	for _, f := range change {
		f(&o)
	}
	h.pool = script.Load(o)
	t.Cleanup(func() {
		h.pool.Stop()
		require.NoError(t, h.pool.Close())
		require.NoError(t, h.catalog.Close())
	})
	return h
}

// call calls a procedure and returns its status and output.
func (h *host) call(name string, pairs ...string) (status int, out map[string]string) {
	var owed db.Pending
	out = map[string]string{}
	in := func(yield func(key, value []byte) bool) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if !yield([]byte(pairs[i]), []byte(pairs[i+1])) {
				return
			}
		}
	}
	status = h.pool.Call(nil, &owed, name, in, func(key, value []byte) { out[string(key)] = string(value) })
	if err := owed.Wait(); err != nil {
		h.t.Error(err)
	}
	return status, out
}

// requireCall calls a procedure that succeeds.
func (h *host) requireCall(want map[string]string, name string, pairs ...string) {
	h.t.Helper()
	status, out := h.call(name, pairs...)
	require.Equal(h.t, script.Success, status, h.log)
	require.Equal(h.t, want, out)
}

// requireCallInTime is requireCall where calls have little time. On a slow machine a good call may
// take that long, too: then it is repeated.
func (h *host) requireCallInTime(limit time.Duration, want map[string]string, name string) {
	h.t.Helper()
	var status int
	var out map[string]string
	require.Eventually(h.t, func() bool {
		begun := time.Now()
		status, out = h.call(name)
		return status != script.Internal || time.Since(begun) < limit
	}, patience, time.Millisecond, h.log)
	require.Equal(h.t, script.Success, status, h.log)
	require.Equal(h.t, want, out)
}

// eval runs a chunk whose result is a text.
func (h *host) eval(code string) string {
	h.t.Helper()
	status, out := h.call("eval", "code", code)
	require.Equal(h.t, script.Success, status, h.log)
	return out["result"]
}

// evaluator is a script with the procedure that eval calls.
const evaluator = `
kt = __kyototycoon__
db = kt.db
function eval(inmap, outmap)
  local f, err = loadstring(inmap.code, "=chunk")
  if not f then outmap.result = err return end
  local function pack(...) return { n = select("#", ...), ... } end
  local results = pack(pcall(f))
  for i = 2, results.n do results[i] = tostring(results[i]) end
  outmap.result = table.concat(results, " ", 2, results.n)
end
`

func (h *host) value(key string) string {
	v, _, err := h.catalog.DB(0).Get(nil, nil, []byte(key))
	if err != nil {
		return err.Error()
	}
	return string(v)
}

// lines are the log's lines without times.
func (h *host) lines() []string {
	var lines []string
	for line := range strings.Lines(h.log.String()) {
		_, line, _ = strings.Cut(strings.TrimSpace(line), ": ")
		lines = append(lines, line)
	}
	return lines
}

// together calls procedures at the same time and returns their statuses.
func (h *host) together(names ...string) map[string]int {
	var mu sync.Mutex
	statuses := map[string]int{}
	var wg sync.WaitGroup
	for _, name := range names {
		wg.Go(func() {
			status, _ := h.call(name)
			mu.Lock()
			defer mu.Unlock()
			statuses[name] = status
		})
	}
	wg.Wait()
	return maps.Clone(statuses)
}
