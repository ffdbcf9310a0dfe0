package filestore

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// TestCompactModel compacts again and again while everything else goes on.
func TestCompactModel(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { compactModel(t, seed) })
	}
}

func compactModel(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	path := filepath.Join(t.TempDir(), "m.kct")
	o := Options{Limit: 32 << 10, LWW: seed%2 == 1, Removals: 50}
	s, err := Open(path, o)
	require.NoError(t, err)
	want, at, ended := map[string]string{}, update.Stamp(0), int64(0)
	for round := range 4 {
		var stop atomic.Bool
		var wg sync.WaitGroup
		work := func(f func(*rand.Rand) error) {
			r := rand.New(rand.NewPCG(rnd.Uint64(), 1))
			wg.Go(func() {
				for !stop.Load() {
					if err := f(r); err != nil {
						t.Errorf("round %d: %v", round, err)
						return
					}
				}
			})
		}
		work(func(*rand.Rand) error {
			if err := compact(s); !errors.Is(err, ErrCompactBehind) && !errors.Is(err, errVoid) {
				return err
			}
			return nil
		})
		work(func(r *rand.Rand) error {
			last := ""
			return s.Scan(store.Start{Edge: true}, func(key, _ []byte) bool {
				if string(key) <= last && last != "" {
					t.Errorf("%q after %q", key, last)
				}
				last = string(key)
				return r.IntN(1000) > 0
			})
		})
		work(func(r *rand.Rand) error {
			if r.IntN(3) == 0 {
				_, err := s.CopyTo(io.Discard)
				return err
			}
			_, err := s.Count()
			return err
		})
		work(func(r *rand.Rand) error {
			switch r.IntN(4) {
			case 0:
				return s.Hold(func() error { return nil })
			case 1:
				return s.Amend(func(*Meta) {})
			case 2:
				_, err := s.mergeOn(true)
				return err
			}
			f, err := s.Freeze(func(take func()) { take() })
			if err != nil {
				return err
			}
			n := int64(0)
			err = f.Scan(false, func(_, _ []byte) error { n++; return nil })
			if err == nil && n != f.Count() {
				err = fmt.Errorf("%d records, expected %d", n, f.Count())
			}
			return errors.Join(err, f.Close())
		})
		for end := time.Now().Add(700 * time.Millisecond); time.Now().Before(end); {
			require.NoError(t, s.Throttle())
			key := fmt.Sprintf("%04d", rnd.IntN(3000))
			at++
			switch n := rnd.IntN(20_000); {
			case n == 0, seed > 1 && n < 40: // often
				s.Apply(at, []update.Update{{Op: update.OpClear}})
				clear(want)
			case n < 6000:
				s.Apply(at, []update.Update{remove(key)})
				delete(want, key)
			default:
				value := fmt.Sprintf("%0*d", rnd.IntN(60), n)
				s.Apply(at, []update.Update{set(key, value)})
				want[key] = value
			}
			if rnd.IntN(50) == 0 {
				value, found, err := s.Get(nil, []byte(key), nil)
				require.NoError(t, err)
				expected, is := want[key]
				require.Equal(t, is, found)
				require.Equal(t, expected, string(value))
			}
		}
		stop.Store(true)
		wg.Wait()
		requireEqual(t, want, s)
		ended += s.CompactionStats().Ended
		if rnd.IntN(2) == 0 {
			_, err := s.Compact(CompactOptions{}) // the store is closed meanwhile
			require.NoError(t, err)
		}
		require.NoError(t, s.Close())
		s, err = Open(path, o)
		require.NoError(t, err)
		requireEqual(t, want, s)
	}
	require.NotZero(t, ended)
	require.NoError(t, s.Merge())
	require.EqualValues(t, len(want), s.Meta().Count)
	require.NoError(t, s.Close())
}
