package lock

import (
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/services/leader"
	"gotycoon/ulog"
)

func openDB(t *testing.T, file string) (*db.Catalog, *db.DB) {
	t.Helper()
	c, err := db.Open([]string{file}, db.Options{})
	require.NoError(t, err)
	return c, c.DB(0)
}

// Whatever happens between, numbers only grow.
func TestTokensGrowAcrossRestarts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "services.kct")
	last := uint64(0)
	for range 3 {
		c, d := openDB(t, file)
		fences, err := DatabaseFences(d, 1)
		require.NoError(t, err)
		tk := newTokens(fences, nil, slog.New(slog.DiscardHandler))
		require.NoError(t, tk.Lead())
		for range 10 {
			n := tk.take()
			require.Greater(t, n, last)
			last = n
		}
		first, err := fences.Reserve(5)
		require.NoError(t, err)
		require.Greater(t, first, last)
		last = first + 4
		require.NoError(t, c.Close())
	}
	require.EqualValues(t, 3*(tokenBlock+5), last)
}

func TestADatabaseThatIsNoPlaceForTokens(t *testing.T) {
	_, err := DatabaseFences(nil, 1)
	require.Error(t, err)
	c, d := openDB(t, ":")
	_, err = DatabaseFences(d, 1)
	require.Error(t, err)
	require.NoError(t, c.Close())

	c, d = openDB(t, filepath.Join(t.TempDir(), "x.kct"))
	fences, err := DatabaseFences(d, 1)
	require.NoError(t, err)
	for _, text := range []string{"0", "no number", "", "18446744073709551615"} {
		require.NoError(t, d.Set(nil, []byte(leader.FencePrefix+"\x001"), []byte(text), record.Never))
		_, err = fences.Reserve(10)
		require.Error(t, err, text)
	}
	require.NoError(t, c.Close())
}

// lockedFences is fakeFences for several goroutines, with a gate.
type lockedFences struct {
	mu sync.Mutex
	fakeFences
	calls int
}

func (f *lockedFences) Reserve(n uint64) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return f.fakeFences.Reserve(n)
}

func (f *lockedFences) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = err
}

// Blocks follow each other while tokens are taken by many; none comes twice.
func TestBlocksOfTokens(t *testing.T) {
	f := &lockedFences{}
	tk := newTokens(f, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, tk.Lead())
	quit := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { tk.run(quit) })
	defer running.Wait()
	defer close(quit)

	tk.current.Load().next.Store(tokenBlock - 50_000) // near the end, behind the half
	var takers sync.WaitGroup
	taken := make([][]uint64, 4)
	for i := range taken {
		takers.Go(func() {
			for len(taken[i]) < 25_000 {
				if n := tk.take(); n != 0 { // otherwise the next block is being made
					taken[i] = append(taken[i], n)
				}
			}
		})
	}
	takers.Wait()
	f.mu.Lock()
	require.Greater(t, f.calls, 1)
	f.mu.Unlock()
	seen := map[uint64]bool{}
	for _, list := range taken {
		last := uint64(0)
		for _, n := range list {
			if n <= last || seen[n] {
				require.Fail(t, "a token came back", "%d after %d", n, last)
			}
			last, seen[n] = n, true
		}
	}
}

// Without a next block there are tokens to the end of the last one, and then none until the disk is
// well again.
func TestTokensRunOut(t *testing.T) {
	f := &lockedFences{}
	tk := newTokens(f, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, tk.Lead())
	f.fail(errors.New("disk"))
	tk.current.Load().next.Store(tokenBlock) // the last one
	require.EqualValues(t, tokenBlock, tk.take())
	require.Zero(t, tk.take())
	require.Zero(t, tk.take())
	require.Error(t, tk.extend())
	f.fail(nil)
	require.NoError(t, tk.extend())
	require.EqualValues(t, tokenBlock+1, tk.take())
}

// The tokens of a server that takes over are above all that the one before it may have given out;
// it gives out none before.
func TestTokensOfTheNextPrimary(t *testing.T) {
	c, d := openDB(t, filepath.Join(t.TempDir(), "services.kct"))
	defer func() { require.NoError(t, c.Close()) }()
	role, err := leader.Open(leader.Options{DB: d, SID: 2})
	require.NoError(t, err)
	receive := func(key, value string) {
		ups := []ulog.Update{{SID: 1, Op: ulog.OpSet, Key: []byte(key), Value: append([]byte{0xff, 0xff, 0xff, 0xff, 0xff}, value...)}}
		_, err := role.Prepare(ups)
		require.NoError(t, err)
		require.NoError(t, role.Replicate(nil, ups, nil, false))
	}
	receive("primary\x001", "1")
	receive(leader.FencePrefix+"\x001", "5000001")
	fences, err := DatabaseFences(d, 2)
	require.NoError(t, err)
	tk := newTokens(fences, role, slog.New(slog.DiscardHandler))
	require.NoError(t, role.Attach(tk))
	require.Zero(t, tk.take())
	require.NoError(t, tk.extend(), "nothing to extend")
	require.NoError(t, role.Claim(true))
	first := tk.take()
	require.Greater(t, first, uint64(5000001+leader.AheadTokens))
	require.Greater(t, first>>20, uint64(1_700_000_000), "above those of a primary that this one has not heard of")
	require.Equal(t, first+1, tk.take())

	receive("primary\x001", "5")
	require.Zero(t, tk.take())
	require.NoError(t, role.Claim(true))
	again := tk.take()
	require.Greater(t, again, first+1)
	require.Less(t, again, first+leader.AheadTokens, "nobody else has reserved any")
}

// Records of before there were server IDs in their keys count, whoever wrote them.
func TestABoundOfTokensWithoutAServerID(t *testing.T) {
	c, d := openDB(t, filepath.Join(t.TempDir(), "services.kct"))
	defer func() { require.NoError(t, c.Close()) }()
	require.NoError(t, d.Set(nil, []byte(leader.FencePrefix), []byte("77"), record.Never))
	fences, err := DatabaseFences(d, 2)
	require.NoError(t, err)
	for _, want := range []uint64{77, 87} {
		first, err := fences.Reserve(10)
		require.NoError(t, err)
		require.Equal(t, want, first)
	}
}

// slowFences takes long for a reservation, and knows whether one is under way.
type slowFences struct {
	fakeFences
	begun   chan struct{}
	release chan struct{}
	inside  atomic.Int32
}

func (f *slowFences) Reserve(n uint64) (uint64, error) {
	f.inside.Add(1)
	defer f.inside.Add(-1)
	close(f.begun)
	<-f.release
	return f.fakeFences.Reserve(n)
}

// The records of a server that has yielded change no more: what it wrote later would be its own
// alone.
func TestYieldWaitsForTheReservationOfTokens(t *testing.T) {
	fast := &lockedFences{}
	tk := newTokens(fast, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, tk.Lead())
	slow := &slowFences{fakeFences: fakeFences{bound: tokenBlock}, begun: make(chan struct{}), release: make(chan struct{})}
	tk.source = slow
	var extending sync.WaitGroup
	extending.Go(func() { require.NoError(t, tk.extend()) })
	<-slow.begun
	time.AfterFunc(10*time.Millisecond, func() { close(slow.release) })
	tk.Yield()
	require.Zero(t, slow.inside.Load(), "a block is being reserved")
	extending.Wait()
	require.Zero(t, tk.take())
	require.NoError(t, tk.extend(), "nothing to extend")
	tk.source = fast
	fast.bound = 2 * tokenBlock
	require.NoError(t, tk.Lead())
	require.EqualValues(t, 2*tokenBlock+1, tk.take(), "what was reserved meanwhile is not used")
}

// In a cluster a server that has stepped down gives out no token, also before its services have
// ended; nor does one that is about to be the primary.
func TestOnlyThePrimaryOfAClusterGivesOutTokens(t *testing.T) {
	c, d := openDB(t, filepath.Join(t.TempDir(), "services.kct"))
	defer func() { require.NoError(t, c.Close()) }()
	role, err := leader.Open(leader.Options{DB: d, SID: 2, Cluster: true})
	require.NoError(t, err)
	fences, err := DatabaseFences(d, 2)
	require.NoError(t, err)
	tk := newTokens(fences, role, slog.New(slog.DiscardHandler))
	require.NoError(t, role.Attach(tk))
	require.NoError(t, role.Stake())
	require.NoError(t, role.Ready())
	require.Zero(t, tk.take(), "it is not the primary yet")
	role.Grant()
	first := tk.take()
	require.NotZero(t, first)
	role.Revoke("another member leads")
	require.Zero(t, tk.take())
	role.Settle()
	require.NoError(t, role.Stake())
	require.NoError(t, role.Ready())
	role.Grant()
	require.Greater(t, tk.take(), first)
}
