package sequence

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
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

// TestMain is a server in the processes that the crash tests start.
func TestMain(m *testing.M) {
	servicetest.Main(m, func(dir string, wrong time.Duration) (services.Service, error) {
		catalog, err := db.Open([]string{filepath.Join(dir, "services.kct")}, db.Options{})
		if err != nil {
			return nil, err
		}
		return New(Options{DB: catalog.DB(0), ServerNo: 1, Now: func() time.Time { return time.Now().Add(wrong) }})
	})
}

// fetchUntil fetches numbers until the server is gone or enough are taken. Numbers of one worker
// grow, across all the servers.
func fetchUntil(addr string, last *moment, left *atomic.Int64, rnd *rand.Rand) (all []moment, err error) {
	var c servicetest.Caller
	defer c.Close()
	for left.Load() > 0 {
		count := 1 + rnd.IntN(200)
		body, ok := c.Call(addr, "/fetch?count="+strconv.Itoa(count))
		if !ok {
			return all, nil
		}
		for text := range strings.FieldsSeq(body) {
			m, err := parseMoment(text)
			if err != nil || m <= *last {
				return all, fmt.Errorf("%s after %v: %w", text, *last, errors.Join(err, errors.New("not in order")))
			}
			*last = m
			all = append(all, m)
		}
		left.Add(-int64(count))
	}
	return all, nil
}

func parseMoment(text string) (moment, error) {
	second, rest, err := zone([]byte(text)[5:], 6)
	if err != nil {
		return 0, err
	}
	serial, _, err := zone(rest, 5)
	return moment(second<<serialBits | serial), err
}

// No number is given out twice, and each client's grow, although the server is killed again and
// again, started within the same second, and its clock set back by an hour twice.
func TestNoNumberIsGivenOutTwice(t *testing.T) {
	const workers = 64
	restarts, scale := servicetest.Kills(t, 4, 20)
	perLife := int64(25_000 * scale)
	dir := t.TempDir()
	var all []moment
	var last [workers]moment
	wrong := 0
	for life := range restarts {
		if life == restarts/3 || life == 2*restarts/3 {
			wrong -= 3600
		}
		server := servicetest.StartChild(t, dir, wrong)
		var left atomic.Int64
		left.Store(perLife)
		var mu sync.Mutex
		var wait sync.WaitGroup
		for w := range workers {
			wait.Go(func() {
				got, err := fetchUntil(server.Addr, &last[w], &left, rand.New(rand.NewPCG(uint64(life), uint64(w))))
				mu.Lock()
				defer mu.Unlock()
				all = append(all, got...)
				if err != nil {
					t.Errorf("connection %d: %v", w, err)
				}
			})
		}
		servicetest.KillAfter(&left, rand.Int64N(perLife/4), server)
		wait.Wait()
		server.Kill()
	}
	slices.Sort(all)
	require.Len(t, slices.Compact(slices.Clone(all)), len(all), "a number twice")
	require.Greater(t, int64(len(all)), perLife*int64(restarts)*2/3)
	if scale > 1 {
		require.Greater(t, len(all), 10_000_000)
	}
	t.Logf("%d numbers, %d kills", len(all), restarts)
}
