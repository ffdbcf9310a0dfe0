package gather_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
)

// stuck is an engine that makes no group, and answers everything else at once.
type stuck struct {
	on    atomic.Bool
	fault mem.Fault
}

func (s *stuck) faults(c mem.Call) mem.Fault {
	if !s.on.Load() || c.Name != mem.Write {
		return mem.Fault{}
	}
	return s.fault
}

func (s *stuck) world(t *testing.T) *world {
	if s.fault == (mem.Fault{}) {
		s.fault = mem.Fault{Delay: 1000 * time.Hour}
	}
	return newWorld(t, 1, mem.Options{Faults: s.faults}, gather.Options{})
}

// silent reports whether balancers are told that no update was answered for four seconds.
func (w *world) silent() bool {
	s := w.gathers[0].Stats()
	return s.Away || s.Silent >= 4*time.Second
}

// storing stores a record again and again, with a pause in between, until stop is called.
func (w *world) storing(name string, pause time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_, _ = do(ctx, w.gathers[0], set(name, "v"))
			<-time.After(pause)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// While updates are asked and none is made, the server is silent without a break: reads are
// answered, and Settle says that groups which had no answer were not made, but that is no update.
// With the first update that is made the silence is over.
func TestNoUpdateIsAnswered(t *testing.T) {
	for name, fault := range map[string]mem.Fault{
		"no answer":          {},
		"answers get lost":   {Kind: engine.Unknown, Away: true},
		"always tried again": {Kind: engine.Undone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stuck{fault: fault}
				w := s.world(t)
				defer w.close()
				w.fine(w.begin(set("a", "1"), set("b", "1")))
				s.on.Store(true)
				began := time.Now()
				stops := []func(){w.storing("a", 10*time.Millisecond), w.storing("b", 3*time.Second)}
				for time.Since(began) < time.Minute {
					<-time.After(99 * time.Millisecond)
					_, _ = w.gathers[0].Read(context.Background(), []engine.Key{key("a")})
					if since := time.Since(began); since > 5*time.Second {
						require.True(t, w.silent(), "after %v", since)
					}
				}
				s.on.Store(false)
				_, err := do(context.Background(), w.gathers[0], set("c", "1"))
				if err != nil { // the call before has begun just now, and takes as long as the caller waits
					_, err = do(context.Background(), w.gathers[0], set("c", "1"))
				}
				require.NoError(t, err)
				synctest.Wait()
				require.False(t, w.silent())
				for _, stop := range stops {
					stop()
				}
			})
		})
	}
}

// Who is idle does not know for ever that updates are not made: balancers may try it again.
func TestAnIdleServerIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{}
		w := s.world(t)
		defer w.close()
		w.fine(w.begin(set("a", "1")))
		s.on.Store(true)
		require.Error(t, w.begin(set("a", "2"))()[0].err)
		<-time.After(9 * time.Second)
		require.True(t, w.silent())
		<-time.After(13 * time.Second) // the lane may have tried again when the caller was about to give up
		require.False(t, w.silent())
	})
}

// When the whole engine was away nobody needs an update to know that it is back.
func TestAfterAnOutageIsNoSilence(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := &cable{hangs: hangs}
			w := newWorld(t, 1, mem.Options{Faults: c.fault}, gather.Options{})
			defer w.close()
			w.fine(w.begin(set("a", "1")))
			c.out.Store(true)
			require.Error(t, w.begin(set("a", "2"))()[0].err)
			<-time.After(time.Minute)
			require.True(t, w.silent())
			c.out.Store(false)
			<-time.After(11 * time.Second) // a call that hangs has to give up
			require.False(t, w.silent())
		})
	}
}

// An update that was not made, and was not waited for either, is no silence of the engine.
func TestAShortTrialIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{fault: mem.Fault{Kind: engine.Undone}}
		w := s.world(t)
		defer w.close()
		w.fine(w.begin(set("a", "1")))
		s.on.Store(true)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := do(ctx, w.gathers[0], set("a", "2"))
		require.Error(t, err)
		for range 200 {
			<-time.After(100 * time.Millisecond)
			require.Less(t, w.gathers[0].Stats().Silent, 2*time.Second)
		}
	})
}

// Operations that turn out to change nothing are answered without a group: nobody who asks for
// nothing else is silent, also where one lane or the other always has such an operation.
func TestOperationsThatChangeNothingAreNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, mem.Options{Faults: (&gate{name: mem.Read, delay: 10 * time.Millisecond}).fault}, gather.Options{})
		defer w.close()
		over := make(chan struct{}, 2)
		for _, names := range [][]engine.Key{{key("none")}, {key("none"), key("of both")}} {
			go func() {
				defer func() { over <- struct{}{} }()
				<-time.After(time.Duration(len(names)) * 5 * time.Millisecond)
				for began := time.Now(); time.Since(began) < time.Minute; {
					_, err := do(context.Background(), w.gathers[0], operation{Keys: names, Body: func(v *gather.View) error {
						v.Remove(names[0])
						return nil
					}})
					if err != nil || w.silent() {
						t.Error(err, w.gathers[0].Stats().Silent)
						return
					}
				}
			}()
		}
		<-over
		<-over
	})
}

// keyless is an engine whose records cannot be read.
type keyless struct{ *mem.Server }

func (k keyless) Read(ctx context.Context, keys []engine.Key, how engine.Reading) ([]engine.Record, error) {
	if len(keys) == 0 {
		return k.Server.Read(ctx, keys, how)
	}
	<-ctx.Done()
	return nil, &engine.Error{Kind: engine.Undone, Away: true, Err: ctx.Err()}
}

// Updates whose records cannot be read are not made either, though the engine is there.
func TestUpdatesThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mem.New(mem.Options{}).Server("a")
		w := &world{T: t, engines: []*mem.Server{e}, gathers: []*gather.Gather{gather.New(keyless{e}, gather.Options{})}}
		defer w.close()
		began, over := time.Now(), make(chan struct{})
		go func() {
			defer close(over)
			for time.Since(began) < time.Minute {
				_, _ = add(w.gathers[0], "n", 1)
				<-time.After(10 * time.Millisecond)
			}
		}()
		for time.Since(began) < time.Minute {
			<-time.After(99 * time.Millisecond)
			require.Equal(t, time.Since(began) >= 4*time.Second, w.silent(), "after %v", time.Since(began))
		}
		<-over
	})
}
