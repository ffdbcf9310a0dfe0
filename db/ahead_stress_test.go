package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/ulog"
)

func TestStressAhead(t *testing.T) {
	for _, oas := range []bool{false, true} {
		for _, shared := range []bool{true, false} {
			t.Run(fmt.Sprint(oas, shared), func(t *testing.T) {
				dir := t.TempDir()
				o := Options{SyncEach: oas, ahead: aheadSize, LogLimit: 32 << 10, CheckpointSize: 64 << 10}
				if shared {
					o.LogDir = filepath.Join(dir, "ulog")
				}
				exprs := []string{filepath.Join(dir, "f.kct"), filepath.Join(dir, "g.kch")}
				if shared {
					exprs = append(exprs, "*", "%")
				}
				c := mustOpen(t, o, exprs...)
				end := time.Now().Add(4 * time.Second)
				var wg sync.WaitGroup
				for w := range 6 {
					wg.Go(func() {
						rnd := rand.New(rand.NewPCG(uint64(w), 9))
						for time.Now().Before(end) {
							d := c.DB(rnd.IntN(len(exprs)))
							key := fmt.Append(nil, "k", rnd.IntN(5))
							size := []int{10, 100, aheadSize - 1, aheadSize, 5000, 40000}[rnd.IntN(6)]
							value := make([]byte, size)
							for i := range value {
								value[i] = byte(w*31 + i)
							}
							var err error
							switch rnd.IntN(12) {
							case 0, 1:
								err = d.Set(nil, key, value, Never)
							case 2:
								err = d.SetInPlace(nil, key, roomFor(value), Never)
							case 3, 4:
								err = d.AddInPlace(nil, key, roomFor(value), Never)
							case 5, 6:
								err = d.ReplaceInPlace(nil, key, roomFor(value), Never)
							case 7:
								err = d.Remove(nil, key)
							case 8:
								_, err = d.SetBulk(nil, []Record{{Key: key, Value: value, XT: Never}, {Key: []byte("z"), Value: value, Room: roomFor(value), XT: Never}}, rnd.IntN(2) == 0)
							case 9:
								if tx, terr := d.Begin(nil, false); terr == nil {
									if rnd.IntN(2) == 0 {
										tx.Share()
									}
									_ = d
									if rnd.IntN(2) == 0 {
										err = tx.Commit(nil)
									} else {
										tx.Abort()
									}
								}
							case 10:
								var old []byte
								old, _, err = d.Get(nil, nil, key)
								if err == nil {
									err = d.CAS(nil, key, old, value, Never)
								}
							case 11:
								if shared && rnd.IntN(4) == 0 {
									err = c.RemoveLogFiles(c.Log().Last())
								} else if d.file != nil {
									err = d.file.Checkpoint()
								}
							}
							var e *Error
							if err != nil && !errors.As(err, &e) {
								t.Errorf("%v", err)
							}
						}
					})
				}
				stop, cancel := context.WithCancel(t.Context())
				states := make([]map[string]string, len(exprs))
				var rwg sync.WaitGroup
				if shared {
					for i := range states {
						states[i] = map[string]string{}
					}
					r, err := c.Log().NewReader(0)
					require.NoError(t, err)
					hold := c.Log().HoldWeakly("reader", 0)
					rwg.Go(func() {
						for {
							e, err := r.Next()
							if errors.Is(err, io.EOF) {
								if r.Wait(stop) != nil {
									if _, err := r.Next(); !errors.Is(err, io.EOF) {
										t.Errorf("more: %v", err)
									}
									return
								}
								continue
							}
							if err != nil {
								t.Errorf("reader: %v", err)
								return
							}
							u, err := ulog.ParseMessage(e.Message)
							if err != nil {
								t.Errorf("parse: %v", err)
							}
							hold.Advance(e.Stamp)
							m := states[u.DBID]
							switch u.Op {
							case ulog.OpSet:
								m[string(u.Key)] = string(u.Value[prefixLen:])
							case ulog.OpRemove:
								delete(m, string(u.Key))
							}
						}
					})
				}
				wg.Wait()
				require.NoError(t, c.SyncLogs())
				if shared {
					time.Sleep(300 * time.Millisecond)
				}
				cancel()
				rwg.Wait()
				var want []map[string]string
				for i := range exprs {
					want = append(want, contents(t, c.DB(i)))
					if shared {
						require.Equal(t, len(want[i]), len(states[i]))
						for k, v := range want[i] {
							require.True(t, states[i][k] == v, k)
						}
					}
				}
				require.NoError(t, c.Err())
				for _, l := range c.logs {
					found, _ := filepath.Glob(filepath.Join(l.Dir(), "value-*"))
					require.Empty(t, found)
				}
				c.stopKeeper()
				c.abandon()
				c = mustOpen(t, o, exprs...)
				for i := range 2 {
					require.True(t, fmt.Sprint(want[i]) == fmt.Sprint(contents(t, c.DB(i))), "replayed")
				}
				require.NoError(t, c.Close())
			})
		}
	}
}
