package ulog

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"gotycoon/client/wire/frame"
)

func TestParseMessage(t *testing.T) {
	tests := []struct {
		name string
		hex  string
		want Update
		err  error
	}{
		{"set", "00030000a102076b31ffffffffff7631", Update{SID: 3, DBID: 0, Op: OpSet, Key: []byte("k1"), Value: []byte("\xff\xff\xff\xff\xffv1")}, nil},
		{"remove", "00070001a2026b31", Update{SID: 7, DBID: 1, Op: OpRemove, Key: []byte("k1")}, nil},
		{"clear", "00070000a5", Update{SID: 7, DBID: 0, Op: OpClear}, nil},
		{"set of the empty key", "00030000a10005ffffffffff", Update{SID: 3, DBID: 0, Op: OpSet, Key: []byte{}, Value: []byte("\xff\xff\xff\xff\xff")}, nil},
		{"longer varnums than needed", "00030000a180028080076f76ffffffffff6572", Update{SID: 3, DBID: 0, Op: OpSet, Key: []byte("ov"), Value: []byte("\xff\xff\xff\xff\xffer")}, nil},
		{"unknown operation", "00030000a378797a", Update{SID: 3, DBID: 0, Op: 0xA3, Value: []byte("xyz")}, nil},
		{"unknown operation without operands", "00030000a0", Update{SID: 3, DBID: 0, Op: 0xA0, Value: []byte{}}, nil},
		{"empty", "", Update{}, ErrMalformed},
		{"three bytes", "000300", Update{}, ErrMalformed},
		{"nothing behind the database", "00030009", Update{SID: 3, DBID: 9}, ErrMalformed},
		{"set whose sizes are too large", "00030000a10505616263", Update{SID: 3, DBID: 0, Op: OpSet}, ErrMalformed},
		{"set whose sizes are too small", "00030000a10101616263", Update{SID: 3, DBID: 0, Op: OpSet}, ErrMalformed},
		{"set with one size", "00030000a105", Update{SID: 3, DBID: 0, Op: OpSet}, ErrMalformed},
		{"set with a varnum cut short", "00030000a1818181", Update{SID: 3, DBID: 0, Op: OpSet}, ErrMalformed},
		{"set whose sizes overflow together", "00030000a181ffffffffffffffff7f0161", Update{SID: 3, DBID: 0, Op: OpSet}, ErrMalformed},
		{"varnum beyond 64 bits", "00030000a1ffffffffffffffffffff7f00", Update{SID: 3, DBID: 0, Op: OpSet}, ErrMalformed},
		{"remove of another size", "00030000a2096b31", Update{SID: 3, DBID: 0, Op: OpRemove}, ErrMalformed},
		{"clear with operands", "00030000a500", Update{SID: 3, DBID: 0, Op: OpClear}, ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			msg, err := hex.DecodeString(tt.hex)
			require.NoError(t, err)
			u, err := ParseMessage(msg)
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, tt.want, u)
		})
	}
}

func TestVarnum(t *testing.T) {
	tests := []struct {
		n   uint64
		hex string
	}{
		{0, "00"}, {1, "01"}, {127, "7f"}, {128, "8100"}, {256, "8200"}, {16383, "ff7f"}, {16384, "818000"},
	}
	for _, tt := range tests {
		b := appendVarnum(nil, tt.n)
		require.Equal(t, tt.hex, hex.EncodeToString(b))
		n, rest, ok := frame.CutVarnum(append(b, 9))
		require.True(t, ok)
		require.Equal(t, tt.n, n)
		require.Equal(t, []byte{9}, rest)
	}
}

func TestMessageRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := Update{
			SID:  rapid.Uint16().Draw(t, "sid"),
			DBID: rapid.Uint16().Draw(t, "dbid"),
			Op:   rapid.SampledFrom([]Op{OpSet, OpRemove, OpClear, 0xA7}).Draw(t, "op"),
		}
		if u.Op == OpSet || u.Op == OpRemove {
			u.Key = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "key")
		}
		if u.Op == OpSet || u.Op == 0xA7 {
			u.Value = rapid.SliceOfN(rapid.Byte(), 0, 20000).Draw(t, "value")
		}
		msg := AppendMessage(nil, &u)
		require.Len(t, msg, messageSize(&u))
		back, err := ParseMessage(msg)
		require.NoError(t, err)
		require.Equal(t, msg, AppendMessage(nil, &back))
		require.Equal(t, string(u.Key), string(back.Key))
		require.Equal(t, string(u.Value), string(back.Value))
	})
}

func TestCommitRecord(t *testing.T) {
	group := appendRecord(nil, 5, &Update{Op: OpClear})
	b := appendCommit(group, 0, 5, 1)
	require.Len(t, b, len(group)+commitSize)
	msg := b[len(group)+RecordHead : len(b)-1]
	require.Equal(t, "0000ffffa001", hex.EncodeToString(msg[:6]), "what the original skips")
	require.True(t, isCommit(msg))
	c, err := parseCommit(msg)
	require.NoError(t, err)
	require.Equal(t, uint32(1), c.count)
	u, err := ParseMessage(msg)
	require.NoError(t, err, "the original has to find it well formed")
	require.Equal(t, uint16(0xFFFF), u.DBID)

	msg[5] = 2
	_, err = parseCommit(msg)
	require.ErrorIs(t, err, errCommitVersion)
}

func TestHeaderRoundTrip(t *testing.T) {
	h := header{size: 529, last: 1795228510168000000}
	b := encodeHeader(h)
	require.Equal(t, "a0000000000000021118e9eed18c90dc00"[:18], hex.EncodeToString(b)[:18])
	back, err := parseHeader(b)
	require.NoError(t, err)
	require.Equal(t, h, back)
}
