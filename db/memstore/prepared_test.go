package memstore

import (
	"bytes"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

func largeUpdate(key string, fill byte) []update.Update {
	return []update.Update{{Op: update.OpSet, Key: []byte(key), Value: bytes.Repeat([]byte{fill}, 3<<20), Stays: true}}
}

func preparers() map[string]store.Preparer {
	return map[string]store.Preparer{"hash": NewHash(HashOptions{}), "tree": NewTreeStore(), "cache": NewCache(CacheOptions{})}
}

// Large values are the same whether they were copied before or not, and what is not applied is
// given back.
func TestPreparedValuesAreStored(t *testing.T) {
	for name, s := range preparers() {
		t.Run(name, func(t *testing.T) {
			used := s.Size()
			for i, key := range []string{"a", "b", "a", string(bytes.Repeat([]byte("k"), 1000))} {
				ups := largeUpdate(key, byte(i))
				if i != 1 {
					s.Prepare(ups)
				}
				s.Apply(0, ups)
				s.Forget(ups)
				got, found, err := s.Get([]byte("head"), []byte(key), nil)
				require.NoError(t, err)
				require.True(t, found)
				require.True(t, bytes.Equal(append([]byte("head"), ups[0].Value...), got))
			}
			ups := largeUpdate("never", 1)
			s.Prepare(ups)
			s.Prepare(ups)
			s.Forget(ups)
			_, found, err := s.Get(nil, []byte("never"), nil)
			require.NoError(t, err)
			require.False(t, found)
			n, err := s.Count()
			require.NoError(t, err)
			require.EqualValues(t, 3, n)
			s.Apply(0, []update.Update{{Op: update.OpClear}})
			require.LessOrEqual(t, s.Size(), used+1<<10)
			require.NoError(t, s.Close())
		})
	}
}

// Who reads a large value while it is replaced and removed gets one value as a whole.
func TestLargeValuesAreReadWithoutALock(t *testing.T) {
	for name, s := range preparers() {
		t.Run(name, func(t *testing.T) {
			stop := make(chan struct{})
			var readers sync.WaitGroup
			s.Apply(0, largeUpdate("k", 1))
			for range 3 {
				readers.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						got, found, err := s.Get(nil, []byte("k"), nil)
						if err != nil || found && (len(got) != 3<<20 || bytes.Count(got, got[:1]) != len(got)) {
							t.Errorf("%v %d bytes", err, len(got))
							return
						}
					}
				})
			}
			for i := range 30 {
				ups := largeUpdate("k", byte(i))
				switch i % 6 {
				case 4:
					ups = []update.Update{{Op: update.OpRemove, Key: []byte("k")}}
				case 5:
					ups = []update.Update{{Op: update.OpClear}}
				default:
					s.Prepare(ups)
				}
				s.Apply(0, ups)
			}
			close(stop)
			readers.Wait()
			require.NoError(t, s.Close())
		})
	}
}
