package client_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
)

func TestBulk(t *testing.T) {
	_, db, _ := open(t)
	ctx := t.Context()
	records := map[string][]byte{"": []byte("empty"), "a": []byte("1"), "_b": {}, "\x00": {0, 1, 2}}
	n, err := db.SetBulk(ctx, records, client.Never, true)
	require.NoError(t, err)
	require.EqualValues(t, 4, n)
	have, err := db.GetBulk(ctx, []string{"", "a", "_b", "\x00", "none"}, false)
	require.NoError(t, err)
	require.Equal(t, records, have)
	n, err = db.RemoveBulk(ctx, []string{"a", "none"}, true)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	n, err = db.SetBulk(ctx, nil, client.Never, false)
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestMatch(t *testing.T) {
	_, _, db := open(t)
	ctx := t.Context()
	_, err := db.SetBulk(ctx, map[string][]byte{"tokyo": {}, "kyoto": {}, "kyodo": {}, "osaka": {}}, client.Never, false)
	require.NoError(t, err)
	keys, err := db.MatchPrefix(ctx, "kyo", -1)
	require.NoError(t, err)
	require.Equal(t, []string{"kyodo", "kyoto"}, keys)
	keys, err = db.MatchPrefix(ctx, "", 3)
	require.NoError(t, err)
	require.Equal(t, []string{"kyodo", "kyoto", "osaka"}, keys)
	keys, err = db.MatchRegex(ctx, "yo$", -1)
	require.NoError(t, err)
	require.Equal(t, []string{"tokyo"}, keys)
	keys, err = db.MatchSimilar(ctx, "kyoto", 3, true, -1)
	require.NoError(t, err)
	require.Equal(t, []string{"kyoto", "kyodo"}, keys[:2])
	keys, err = db.MatchPrefix(ctx, "none", -1)
	require.NoError(t, err)
	require.Empty(t, keys)
}

func TestBinaryBulk(t *testing.T) {
	c, db, tree := open(t)
	ctx := t.Context()
	large := bytes.Repeat([]byte{0xbf}, 100_000) // more than the buffer of a connection
	soon := time.Now().Add(time.Hour).Truncate(time.Second)
	n, err := c.SetBinary(ctx, []client.BinaryRecord{
		{Key: "", Value: []byte("empty"), Expiry: client.Never},
		{Key: "large", Value: large, Expiry: client.At(soon)},
		{DB: 1, Key: "tree", Value: []byte("1"), Expiry: client.Never},
		{DB: 9, Key: "nowhere", Expiry: client.Never},
	})
	require.NoError(t, err)
	require.Equal(t, 3, n)
	records, err := c.GetBinary(ctx, 0, []string{"none", "large", ""})
	require.NoError(t, err)
	require.Len(t, records, 2)
	require.True(t, records[0].Expires.Equal(soon))
	require.True(t, bytes.Equal(large, records[0].Value))
	require.Equal(t, client.Record{Key: "", Value: []byte("empty")}, records[1])
	value, err := tree.Get(ctx, "tree")
	require.NoError(t, err)
	require.Equal(t, "1", string(value))

	n, err = c.RemoveBinary(ctx, 0, []string{"large", "none"})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, c.SetBinaryNoReply(ctx, []client.BinaryRecord{{Key: "quick", Expiry: client.Never}}))
	exists, err := db.Exists(ctx, "quick") // on the same connection, so after it
	require.NoError(t, err)
	require.True(t, exists)
	require.NoError(t, c.RemoveBinaryNoReply(ctx, 0, []string{"quick"}))
	exists, err = db.Exists(ctx, "quick")
	require.NoError(t, err)
	require.False(t, exists)
}

func TestRefusedBinaryRequest(t *testing.T) {
	c, db, _ := open(t)
	_, err := c.PlayScriptBinary(t.Context(), "none", map[string][]byte{"a": []byte("1")})
	require.EqualError(t, err, "5: internal error: internal error")
	require.NoError(t, db.Set(t.Context(), "k", nil, client.Never), "the client goes on")
}
