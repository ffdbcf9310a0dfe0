package frame_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
)

// part is one encoded part and what it decodes to.
type part struct {
	name   string
	bytes  string // hexadecimal, blanks ignored
	encode func() []byte
	decode func(p []byte) (any, int, error)
	want   any
}

func parts() []part {
	header := frame.Header{Magic: frame.RemoveBulk, Flags: 0x01020304, RNum: 0x05060708}
	key := frame.Key{DBIdx: 0x0102, Key: []byte("ab")}
	record := frame.Record{DBIdx: 3, XT: -2, Key: []byte("k"), Value: []byte("vw")}
	script := frame.Script{Flags: 1, RNum: 2, Name: []byte("xyz")}
	pair := frame.Pair{Key: []byte("k"), Value: []byte("vw")}
	follow := frame.Follow{Flags: frame.WhiteSID, TS: 0x1112131415161718, SID: 7}
	update := frame.Message{Magic: frame.Replication, TS: 9, Log: []byte{0, 7, 0, 0, 0xA5}}
	filler := frame.Message{Magic: frame.Replication, TS: 9, Log: []byte{}}
	heartbeat := frame.Message{Magic: frame.Heartbeat, TS: 10}
	return []part{
		coded("header", "b9 01020304 05060708",
			frame.AppendHeader, frame.DecodeHeader, header),
		coded("key", "0102 00000002 6162",
			frame.AppendKey, frame.DecodeKey, key),
		coded("record", "0003 00000001 00000002 fffffffffffffffe 6b 7677",
			frame.AppendRecord, frame.DecodeRecord, record),
		coded("script", "b4 00000001 00000003 00000002 78797a",
			frame.AppendScript, frame.DecodeScript, script),
		coded("pair", "00000001 00000002 6b 7677",
			frame.AppendPair, frame.DecodePair, pair),
		coded("follow", "b1 00000001 1112131415161718 0007",
			frame.AppendFollow, frame.DecodeFollow, follow),
		{"reply", "ba 00000102",
			func() []byte { return frame.AppendReply(nil, frame.GetBulk, 0x102) }, decodeReply, uint32(0x102)},
		coded("update", "b1 0000000000000009 00000005 00070000a5",
			frame.AppendMessage, frame.DecodeMessage, update),
		coded("filler", "b1 0000000000000009 00000000",
			frame.AppendMessage, frame.DecodeMessage, filler),
		coded("heartbeat", "b0 000000000000000a",
			frame.AppendMessage, frame.DecodeMessage, heartbeat),
	}
}

// coded makes a part of a value, and of the functions that encode and decode it.
func coded[T any](name, bytes string, encode func([]byte, T) []byte, decode func([]byte) (T, int, error), value T) part {
	return part{name, bytes, func() []byte { return encode(nil, value) }, decoder(decode), value}
}

func decoder[T any](decode func([]byte) (T, int, error)) func([]byte) (any, int, error) {
	return func(p []byte) (any, int, error) { return decode(p) }
}

func decodeReply(p []byte) (any, int, error) {
	v, n, err := frame.DecodeReply(p, frame.GetBulk)
	return v, n, err
}

func TestLayout(t *testing.T) {
	for _, c := range slices.Concat(parts(), copyParts()) {
		t.Run(c.name, func(t *testing.T) {
			want := unhex(t, c.bytes)
			require.Equal(t, want, c.encode(), "encoded")
			got, n, err := c.decode(append(want, "more"...))
			require.NoError(t, err)
			require.Equal(t, len(want), n)
			require.Equal(t, c.want, got)
		})
	}
}

// TestShort cuts every part at every length: the decoder must ask for more than it has, and never
// for more than the part has.
func TestShort(t *testing.T) {
	for _, c := range slices.Concat(parts(), copyParts()) {
		t.Run(c.name, func(t *testing.T) {
			whole := unhex(t, c.bytes)
			for cut := range whole {
				_, n, err := c.decode(whole[:cut])
				require.ErrorIs(t, err, frame.ErrShort, "%d bytes", cut)
				require.Greater(t, n, cut)
				require.LessOrEqual(t, n, len(whole))
			}
		})
	}
}

// refusal is a message that cannot be decoded.
type refusal struct {
	name, bytes string
	decode      func([]byte) (any, int, error)
	want        error
}

func TestRefused(t *testing.T) {
	cases := []refusal{
		{"header of another message", "b4", decoder(frame.DecodeHeader), frame.ErrMagic},
		{"script of another message", "b8", decoder(frame.DecodeScript), frame.ErrMagic},
		{"follow of another message", "b0", decoder(frame.DecodeFollow), frame.ErrMagic},
		{"reply to another request", "b8", decodeReply, frame.ErrMagic},
		{"unknown message in a stream", "b2", decoder(frame.DecodeMessage), frame.ErrMagic},
		{"unknown message with a body", "bf 0000000000000001", decoder(frame.DecodeMessage), frame.ErrMagic},
		{"error instead of a reply", "bf", decodeReply, frame.ErrRefused},
		{"key", "0000 10000001", decoder(frame.DecodeKey), frame.ErrTooLarge},
		{"record key", "0000 10000001 00000000 0000000000000000", decoder(frame.DecodeRecord), frame.ErrTooLarge},
		{"record value", "0000 00000000 ffffffff 0000000000000000", decoder(frame.DecodeRecord), frame.ErrTooLarge},
		{"script name", "b4 00000000 10000001 00000000", decoder(frame.DecodeScript), frame.ErrTooLarge},
		{"pair key", "10000001 00000000", decoder(frame.DecodePair), frame.ErrTooLarge},
		{"pair value", "00000000 10000001", decoder(frame.DecodePair), frame.ErrTooLarge},
		{"update", "b1 0000000000000001 60000001", decoder(frame.DecodeMessage), frame.ErrTooLarge},
	}
	for _, c := range slices.Concat(cases, copyRefusals()) {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := c.decode(unhex(t, c.bytes))
			require.ErrorIs(t, err, c.want)
		})
	}
}

// The largest sizes are no error: the decoder asks for the bytes.
func TestLargest(t *testing.T) {
	_, n, err := frame.DecodeRecord(unhex(t, "0000 10000000 10000000 0000000000000000"))
	require.ErrorIs(t, err, frame.ErrShort)
	require.Equal(t, 18+2*frame.MaxSize, n)
}

func TestMagicString(t *testing.T) {
	words := map[frame.Magic]string{
		frame.Replication: "replication", frame.PlayScript: "play_script", frame.SetBulk: "set_bulk",
		frame.RemoveBulk: "remove_bulk", frame.GetBulk: "get_bulk",
		frame.Heartbeat: "unknown", frame.Error: "unknown", 0: "unknown",
	}
	for m, word := range words {
		require.Equal(t, word, m.String())
	}
}

// Decoded slices must not let an append run into the bytes behind them.
func TestDecodedSlicesAreClipped(t *testing.T) {
	p := append(frame.AppendRecord(nil, frame.Record{Key: []byte("k"), Value: []byte("v")}), 'z')
	r, _, err := frame.DecodeRecord(p)
	require.NoError(t, err)
	_ = append(r.Key, 'x')
	_ = append(r.Value, 'y')
	require.Equal(t, "kvz", string(p[len(p)-3:]))
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	p, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return p
}
