package client_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/server"
)

// follow runs Follow until the test ends, and returns its updates and the error of its end.
func follow(t *testing.T, c *client.Client, o client.FollowOptions) (<-chan client.Update, <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	updates, ended := make(chan client.Update), make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for u, err := range c.Follow(ctx, o) {
			if err != nil {
				ended <- err
				return
			}
			select {
			case updates <- u:
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return updates, ended
}

func receive[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		require.Fail(t, "nothing has come")
	}
	return v
}

// Updates are typed, with the expiration times of databases that have some.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	cfg := server.DefaultConfig()
	cfg.Databases = []string{"%", "%#ktopts=p"}
	cfg.UpdateLog, cfg.ServerID = filepath.Join(dir, "ulog"), 7
	s := startServer(cfg)
	defer s.stop()
	c := client.New(s.addr, client.Options{Timeout: patience})
	defer c.Close()
	ctx := t.Context()
	require.NoError(t, c.DB("0").Set(ctx, "earlier", nil, client.Never))
	updates, _ := follow(t, c, client.FollowOptions{Progress: true})
	require.Equal(t, client.Progress, receive(t, updates).Kind, "from now on")

	year := time.Now().Add(365 * 24 * time.Hour).Truncate(time.Second)
	begun := time.Now().Add(-time.Second)
	require.NoError(t, c.DB("0").Set(ctx, "a", []byte("1"), client.At(year)))
	require.NoError(t, c.DB("0").Append(ctx, "a", []byte("2"), client.Never))
	require.NoError(t, c.DB("1").Set(ctx, "persistent", []byte("value"), client.In(time.Hour)))
	require.NoError(t, c.DB("0").Remove(ctx, "a"))
	require.NoError(t, c.DB("1").Clear(ctx))
	want := []client.Update{
		{Kind: client.Stored, Key: "a", Value: []byte("1"), Expires: year},
		{Kind: client.Stored, Key: "a", Value: []byte("12")},
		{Kind: client.Stored, DB: 1, Key: "persistent", Value: []byte("value")},
		{Kind: client.Removed, Key: "a"},
		{Kind: client.Cleared, DB: 1},
	}
	var last uint64
	for _, w := range want {
		u := receive(t, updates)
		for u.Kind == client.Progress {
			u = receive(t, updates)
		}
		require.Greater(t, u.Stamp, last)
		require.True(t, u.Time().After(begun))
		last, w.Stamp, w.Server = u.Stamp, u.Stamp, 7
		require.Equal(t, w, u)
	}
	all, _ := follow(t, c, client.FollowOptions{All: true})
	require.Equal(t, "earlier", receive(t, all).Key)
	behind, _ := follow(t, c, client.FollowOptions{After: last - 1, Only: 7})
	require.Equal(t, client.Cleared, receive(t, behind).Kind)
	none, _ := follow(t, c, client.FollowOptions{All: true, Without: 7, Progress: true})
	require.Equal(t, client.Progress, receive(t, none).Kind)
	others, _ := follow(t, c, client.FollowOptions{All: true, Only: 8, Progress: true})
	require.Equal(t, client.Progress, receive(t, others).Kind)
}

// Each update comes once, however often the connection breaks.
func TestFollowGoesOn(t *testing.T) {
	m := startMember(t, 1, nil)
	c := client.New(m.way.addr, client.Options{Timeout: patience})
	defer c.Close()
	updates, _ := follow(t, c, client.FollowOptions{All: true})
	for i := range 5 {
		key := string(rune('a' + i))
		require.NoError(t, m.own.DB("").Set(t.Context(), key, nil, client.Never))
		require.Equal(t, key, receive(t, updates).Key)
		m.way.turn(m.addr)
	}
}

// Stamps of one log mean nothing in another one.
func TestFollowOfAnotherLog(t *testing.T) {
	m := startMember(t, 1, nil)
	ctx := t.Context()
	require.NoError(t, m.own.DB("").Set(ctx, "a", nil, client.Never))
	at := position(t, m)
	reach, err := m.own.UlogReach(ctx, at)
	require.NoError(t, err)
	c := client.New(m.way.addr, client.Options{Timeout: patience})
	defer c.Close()
	updates, ended := follow(t, c, client.FollowOptions{After: at, LogID: reach.LogID})
	require.NoError(t, m.own.DB("").Set(ctx, "b", nil, client.Never))
	require.Equal(t, "b", receive(t, updates).Key)

	other := startMember(t, 2, nil)
	require.NoError(t, other.own.DB("").Set(ctx, "c", nil, client.Never))
	m.way.turn(other.addr)
	err = receive(t, ended)
	require.ErrorIs(t, err, client.ErrLogChanged)
	_, ended = follow(t, other.own, client.FollowOptions{After: 1, LogID: reach.LogID})
	require.ErrorIs(t, receive(t, ended), client.ErrLogChanged)
}

func TestFollowOfALogWithAGap(t *testing.T) {
	cfg := server.DefaultConfig()
	cfg.UpdateLog, cfg.ServerID, cfg.UpdateLogLimit = filepath.Join(t.TempDir(), "ulog"), 1, 1<<12
	s := startServer(cfg)
	defer s.stop()
	c := client.New(s.addr, client.Options{})
	defer c.Close()
	ctx := t.Context()
	require.NoError(t, c.DB("").Set(ctx, "a", nil, client.Never))
	files, err := c.UlogList(ctx)
	require.NoError(t, err)
	at := files[0].Last
	for range 3 {
		require.NoError(t, c.DB("").Set(ctx, "b", make([]byte, 1<<13), client.Never))
	}
	require.NoError(t, c.UlogRemove(ctx, 0))
	_, ended := follow(t, c, client.FollowOptions{After: at})
	require.ErrorIs(t, receive(t, ended), client.ErrGap)
	updates, _ := follow(t, c, client.FollowOptions{All: true})
	require.Equal(t, "b", receive(t, updates).Key, "what the log still has")
}

func TestFollowOfAServerWithoutALog(t *testing.T) {
	s := startServer(server.DefaultConfig())
	defer s.stop()
	c := client.New(s.addr, client.Options{})
	defer c.Close()
	for _, o := range []client.FollowOptions{{}, {All: true}} {
		_, ended := follow(t, c, o)
		err := receive(t, ended)
		require.ErrorIs(t, err, client.ErrNoLog)
		require.ErrorIs(t, err, errors.ErrUnsupported)
	}
	require.NoError(t, c.Close())
	_, ended := follow(t, c, client.FollowOptions{All: true})
	require.ErrorIs(t, receive(t, ended), client.ErrNetwork)
}

func TestFollowTakesItsTime(t *testing.T) {
	c := client.New(addr, client.Options{Timeout: 5 * time.Second})
	defer c.Close()
	beats := 0
	for u, err := range c.FollowLog(t.Context(), 0, 0, false) {
		require.NoError(t, err)
		if u.Heartbeat {
			if beats++; beats == 2 {
				break
			}
		}
	}
	require.Equal(t, 2, beats)
}
