package client_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

// fill stores n records whose keys are in order.
func fill(t *testing.T, db *client.DB, n int) []string {
	t.Helper()
	records, keys := map[string][]byte{}, make([]string, n)
	for i := range n {
		keys[i] = fmt.Sprintf("key%05d", i)
		records[keys[i]] = []byte(fmt.Sprint(i))
	}
	_, err := db.SetBulk(t.Context(), records, client.Never, false)
	require.NoError(t, err)
	return keys
}

func TestAll(t *testing.T) {
	_, _, db := open(t)
	for _, n := range []int{0, 1, 2, 3, 63, 64, 127, 128, 1000} {
		want := fill(t, db, n)
		var have []string
		for r, err := range db.All(t.Context()) {
			require.NoError(t, err)
			have = append(have, r.Key)
			require.Equal(t, fmt.Sprint(len(have)-1), string(r.Value))
		}
		require.Len(t, have, n)
		require.Equal(t, want, append([]string{}, have...))
	}
}

func TestIterationsThatAreLeft(t *testing.T) {
	_, _, db := open(t)
	keys := fill(t, db, 500)
	var have []string
	for r, err := range db.All(t.Context()) {
		require.NoError(t, err)
		if have = append(have, r.Key); len(have) == 100 {
			break
		}
	}
	require.Equal(t, keys[:100], have)
}

// Replies that were fetched ahead must not be taken for those of later calls.
func TestCursorAfterAnIterationThatWasLeft(t *testing.T) {
	_, _, db := open(t)
	keys := fill(t, db, 100)
	c := db.Cursor()
	defer c.Close()
	require.NoError(t, c.Jump(t.Context()))
	n := 0
	for range c.Keys(t.Context()) {
		if n++; n == 20 {
			break
		}
	}
	require.NoError(t, c.JumpKey(t.Context(), keys[50]))
	key, err := c.GetKey(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, keys[50], key)
}

func TestSignalsOfACursorAreForItsFirstCall(t *testing.T) {
	_, _, db := open(t)
	fill(t, db, 1)
	c := db.With(client.Signals{Wait: "never sent", WaitTime: time.Millisecond}).Cursor()
	defer c.Close()
	require.ErrorIs(t, c.Jump(t.Context()), client.ErrTimeout)
	require.NoError(t, c.Jump(t.Context()))
}

func TestIterationsThatFail(t *testing.T) {
	_, _, db := open(t)
	fill(t, db, 500)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	var last error
	for _, err := range db.All(ctx) {
		if last = err; err == nil {
			if n++; n == 50 {
				cancel()
			}
		}
	}
	require.ErrorIs(t, last, context.Canceled)
	require.ErrorIs(t, last, client.ErrNetwork)
	require.Less(t, n, 500)
}

func TestBackward(t *testing.T) {
	_, _, db := open(t)
	keys := fill(t, db, 300)
	c := db.Cursor()
	require.NoError(t, c.JumpBackKey(t.Context(), keys[200]+"x"))
	i := 200
	for key, err := range c.Keys(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, keys[i], key)
		i--
	}
	require.Equal(t, -1, i)
	_, err := c.Get(t.Context(), false)
	require.ErrorIs(t, err, client.ErrNoRecord, "the cursor is closed")
	require.NoError(t, c.Close())
}

func TestCursorMovesAndChanges(t *testing.T) {
	_, _, db := open(t)
	fill(t, db, 5)
	ctx := t.Context()
	c := db.Cursor()
	defer c.Close()
	require.NoError(t, c.JumpKey(ctx, "key00001"))
	require.NoError(t, c.Step(ctx))
	require.NoError(t, c.StepBack(ctx))
	key, err := c.GetKey(ctx, false)
	require.NoError(t, err)
	require.Equal(t, "key00001", key)
	require.NoError(t, c.JumpKey(ctx, "key00001"))
	require.NoError(t, c.SetValue(ctx, []byte("one"), client.Never, true))
	value, err := c.GetValue(ctx, true)
	require.NoError(t, err)
	require.Equal(t, "2", string(value))
	require.NoError(t, c.Remove(ctx)) // 3
	record, err := c.Seize(ctx)       // 4
	require.NoError(t, err)
	require.Equal(t, client.Record{Key: "key00004", Value: []byte("4")}, record)
	require.ErrorIs(t, c.Step(ctx), client.ErrNoRecord)
	require.NoError(t, c.JumpBack(ctx))
	record, err = c.Get(ctx, false)
	require.NoError(t, err)
	require.Equal(t, "key00002", record.Key)
	value, err = db.Get(ctx, "key00001")
	require.NoError(t, err)
	require.Equal(t, "one", string(value))
}

func TestCursorOfAHashDatabaseGoesForwardOnly(t *testing.T) {
	_, db, _ := open(t)
	fill(t, db, 1)
	c := db.Cursor()
	defer c.Close()
	err := c.JumpBack(t.Context())
	var failure *client.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, client.NotImplemented, failure.Code)
}
