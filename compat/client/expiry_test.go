package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

// An expiry that a program leaves out is none, in every call that takes one; a record that is there
// loses the one that it has.
func TestZeroIsNever(t *testing.T) {
	c, db, _ := open(t)
	calls := map[string]func(ctx context.Context, key string) error{
		"set":     func(ctx context.Context, key string) error { return db.Set(ctx, key, []byte("v"), 0) },
		"replace": func(ctx context.Context, key string) error { return db.Replace(ctx, key, []byte("v"), 0) },
		"append":  func(ctx context.Context, key string) error { return db.Append(ctx, key, []byte("v"), 0) },
		"cas":     func(ctx context.Context, key string) error { return db.CAS(ctx, key, make([]byte, 8), []byte("v"), 0) },
		"touch":   func(ctx context.Context, key string) error { return db.Touch(ctx, key, 0) },
		"increment": func(ctx context.Context, key string) error {
			_, err := db.Increment(ctx, key, 1, 0, 0)
			return err
		},
		"increment double": func(ctx context.Context, key string) error {
			_, err := db.IncrementDouble(ctx, key, 1, 0, 0)
			return err
		},
		"set bulk": func(ctx context.Context, key string) error {
			_, err := db.SetBulk(ctx, map[string][]byte{key: nil}, 0, false)
			return err
		},
		"set binary": func(ctx context.Context, key string) error {
			_, err := c.SetBinary(ctx, []client.BinaryRecord{{Key: key}})
			return err
		},
		"cursor": func(ctx context.Context, key string) error {
			cursor := db.Cursor()
			defer cursor.Close()
			if err := cursor.JumpKey(ctx, key); err != nil {
				return err
			}
			return cursor.SetValue(ctx, []byte("v"), 0, false)
		},
		"add": func(ctx context.Context, key string) error {
			if err := db.Remove(ctx, key); err != nil {
				return err
			}
			return db.Add(ctx, key, []byte("v"), 0)
		},
	}
	for name, call := range calls {
		size := 8 // of a number that can be added to
		if name == "increment double" {
			size = 16
		}
		require.NoError(t, db.Set(t.Context(), name, make([]byte, size), client.In(time.Hour)))
		require.NoError(t, call(t.Context(), name), name)
		record, err := db.GetRecord(t.Context(), name)
		require.NoError(t, err, name)
		require.True(t, record.Expires.IsZero(), name)
		ttl, err := db.TTL(t.Context(), name)
		require.NoError(t, err, name)
		require.Zero(t, ttl, name)
	}
}

func TestTouchAndTTL(t *testing.T) {
	c, db, tree := open(t)
	ctx := t.Context()
	require.ErrorIs(t, db.Touch(ctx, "none", client.In(time.Hour)), client.ErrNoRecord)
	_, err := db.TTL(ctx, "none")
	require.ErrorIs(t, err, client.ErrNoRecord)
	for _, db := range []*client.DB{db, tree} {
		require.NoError(t, db.Set(ctx, "k", []byte("value"), client.Never))
		require.NoError(t, db.Touch(ctx, "k", client.In(time.Hour)))
		ttl, err := db.TTL(ctx, "k")
		require.NoError(t, err)
		require.InDelta(t, time.Hour, ttl, float64(30*time.Second))
		value, err := db.Get(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, "value", string(value))
		require.NoError(t, db.Touch(ctx, "k", client.In(ttl)), "what TTL returns, In takes")
		require.NoError(t, db.Touch(ctx, "k", client.In(-1)))
		_, err = db.TTL(ctx, "k")
		require.ErrorIs(t, err, client.ErrNoRecord, "it has expired")
	}
	require.ErrorContains(t, c.DB("none").Touch(ctx, "k", client.Never), "no such database")
}
