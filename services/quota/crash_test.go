package quota

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/services"
	"gotycoon/services/internal/servicetest"
)

const crashLimit = 100_000 // units of the quota per kill

// TestMain is a server in the processes that the crash tests start.
func TestMain(m *testing.M) {
	servicetest.Main(m, func(dir string, _ time.Duration) (services.Service, error) {
		catalog, err := db.Open([]string{filepath.Join(dir, "services.kct")}, db.Options{})
		if err != nil {
			return nil, err
		}
		return New(Options{DB: catalog.DB(0), Limit: crashLimit, Export: filepath.Join(dir, "journals")})
	})
}

// What clients were granted and what remains add up to the limit, exactly, however often the server
// is killed: a client that lost a reply asks again under the same id. Nothing that was granted is
// unknown later, when some of it is given back. Units remain to the end.
func TestNoUnitIsLostOrMade(t *testing.T) {
	const workers = 64
	lives, scale := servicetest.Kills(t, 5, 50)
	dir := t.TempDir()
	limit := int64(crashLimit)
	if scale > 1 {
		limit = 10 * crashLimit
	}
	server := servicetest.StartChild(t, dir, 0)
	if extra := limit - crashLimit; extra > 0 {
		_, ok := new(servicetest.Caller).Call(server.Addr, fmt.Sprintf("/increase?amt=%d", extra))
		require.True(t, ok)
	}
	var addr atomic.Pointer[string]
	addr.Store(&server.Addr)
	var granted, calls atomic.Int64
	var done atomic.Bool
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() { takeUnits(t, w, &addr, &granted, &calls, &done) })
	}
	for life := range lives {
		target := int64(life+1) * 400 * int64(min(scale, 4))
		for calls.Load() < target && !done.Load() {
			runtime.Gosched()
		}
		server.Kill()
		server = servicetest.StartChild(t, dir, 0)
		addr.Store(&server.Addr)
	}
	done.Store(true)
	wait.Wait()
	body, ok := new(servicetest.Caller).Call(server.Addr, "/query")
	require.True(t, ok)
	remaining, err := strconv.ParseInt(strings.TrimSpace(body), 10, 64)
	require.NoError(t, err)
	require.Equal(t, limit, granted.Load()+remaining)
	require.Positive(t, granted.Load())
	require.Positive(t, remaining)
	t.Logf("%d calls, %d units granted, %d kills", calls.Load(), granted.Load(), lives)
}

// takeUnits applies for units until it is told to end, and cancels some of what it was granted. It
// repeats every call until it has a reply.
func takeUnits(t *testing.T, worker int, addr *atomic.Pointer[string], granted, calls *atomic.Int64, done *atomic.Bool) {
	var c servicetest.Caller
	defer c.Close()
	rnd := rand.New(rand.NewPCG(uint64(worker), 1))
	call := func(format string, args ...any) (journal string) {
		path := fmt.Sprintf(format, args...)
		body, ok := "", false
		for !ok {
			body, ok = c.Call(*addr.Load(), path)
		}
		calls.Add(1)
		journal, _, _ = strings.Cut(strings.TrimSpace(body), " ")
		return journal
	}
	for i := 0; !done.Load(); i++ {
		amount := 1 + rnd.Int64N(20)
		journal := call("/apply?amt=%d&id=%d-%d", amount, worker, i)
		if journal == "0" {
			continue
		}
		granted.Add(amount)
		if rnd.IntN(5) > 0 {
			continue
		}
		if call("/cancel?jnlsno=%s&id=%d-%d-c", journal, worker, i) == "0" {
			t.Errorf("journal %s was granted and is not there", journal)
		}
		granted.Add(-amount)
	}
}
