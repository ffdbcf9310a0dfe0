package frame_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/counter/frame"
)

func TestRequests(t *testing.T) {
	for _, row := range []struct {
		op   frame.Opcode
		args frame.Args
		want string
	}{
		{frame.Noop, frame.Args{}, "90000000 00000000 01020304"},
		{frame.Stats, frame.Args{Name: []byte("not sent")}, "90100000 00000000 01020304"},
		{frame.Get, frame.Args{Name: []byte("ab")}, "90010000 00000004 01020304 0002 6162"},
		{frame.Acquire, frame.Args{Resources: 5, Maximum: 258, Name: []byte("a")}, "90020000 0000000b 01020304 00000005 00000102 0001 61"},
		{frame.Release, frame.Args{Resources: 5, Name: []byte("a")}, "90030000 00000007 01020304 00000005 0001 61"},
	} {
		have := frame.AppendRequest([]byte("x"), row.op, 0x01020304, row.args)
		require.Equal(t, "78"+strings.ReplaceAll(row.want, " ", ""), hex.EncodeToString(have))
		h := frame.DecodeHeader(have[1:])
		require.Equal(t, frame.Header{Magic: frame.RequestMagic, Op: row.op, Size: uint32(len(have) - 13), Opaque: 0x01020304}, h)
	}
}

func TestArgumentsThatAreRefused(t *testing.T) {
	for _, row := range []struct {
		name   string
		decode func([]byte) (frame.Args, bool)
		body   string
	}{
		{"get: no body", frame.DecodeGet, ""},
		{"get: half a length", frame.DecodeGet, "00"},
		{"get: no name", frame.DecodeGet, "000061"},
		{"get: name is cut", frame.DecodeGet, "000261"},
		{"acquire: no name length", frame.DecodeAcquire, "000000010000000100"},
		{"acquire: no name", frame.DecodeAcquire, "00000001000000010000"},
		{"acquire: nothing", frame.DecodeAcquire, "0000000000000001000161"},
		{"acquire: over the maximum", frame.DecodeAcquire, "0000000200000001000161"},
		{"release: no name length", frame.DecodeRelease, "0000000100"},
		{"release: name is cut", frame.DecodeRelease, "00000001000261"},
	} {
		body, err := hex.DecodeString(row.body)
		require.NoError(t, err)
		_, ok := row.decode(body)
		require.False(t, ok, row.name)
	}
}

func TestArguments(t *testing.T) {
	a, ok := frame.DecodeAcquire([]byte("\x00\x00\x00\x02\x00\x00\x00\x02\x00\x01nmore"))
	require.True(t, ok)
	require.Equal(t, frame.Args{Resources: 2, Maximum: 2, Name: []byte("n")}, a)
	a, ok = frame.DecodeRelease([]byte("\x00\x00\x00\x00\x00\x01nmore"))
	require.True(t, ok)
	require.Equal(t, frame.Args{Name: []byte("n")}, a)
	a, ok = frame.DecodeGet([]byte("\x00\x02\x00\xffmore"))
	require.True(t, ok)
	require.Equal(t, frame.Args{Name: []byte("\x00\xff")}, a)
}

func TestStatusTexts(t *testing.T) {
	for status, text := range map[frame.Status]string{
		0: "", 1: "Not found", 4: "Invalid arguments", 0x21: "Resource not available", 0x22: "Not acquired",
		0x81: "Unknown command", 0x82: "OutOfMemory",
	} {
		require.Equal(t, text, status.String())
		have := frame.AppendReply(nil, frame.Release, 7, status)
		require.Equal(t, frame.Header{Magic: frame.ReplyMagic, Op: frame.Release, Status: status, Size: uint32(len(text)), Opaque: 7},
			frame.DecodeHeader(have))
		require.Equal(t, text, string(have[frame.HeaderLen:]))
	}
}

func TestReplies(t *testing.T) {
	have := frame.AppendNumber(nil, frame.Get, 1, 258)
	require.Equal(t, "910100000000000400000001"+"00000102", hex.EncodeToString(have))
	n, err := frame.DecodeNumber(have[frame.HeaderLen:])
	require.NoError(t, err)
	require.EqualValues(t, 258, n)

	stats := []frame.Stat{{Name: "a", Value: "12"}, {Name: "bc", Value: ""}}
	have = frame.AppendStats(nil, 1, stats)
	require.Equal(t, "91100000"+"0000000d"+"00000001"+"00010002"+"613132"+"00020000"+"6263", hex.EncodeToString(have))
	back, err := frame.DecodeStats(have[frame.HeaderLen:])
	require.NoError(t, err)
	require.Equal(t, stats, back)

	have = frame.AppendEntry(nil, 1, 2, 3, "ab")
	require.Equal(t, "91110000"+"0000000c"+"00000001"+"00000002"+"00000003"+"00026162", hex.EncodeToString(have))
	e, err := frame.DecodeEntry(have[frame.HeaderLen:])
	require.NoError(t, err)
	require.Equal(t, frame.Entry{Current: 2, Maximum: 3, Name: []byte("ab")}, e)
}

func TestMalformedReplies(t *testing.T) {
	_, err := frame.DecodeNumber([]byte("abc"))
	require.ErrorIs(t, err, frame.ErrReply)
	_, err = frame.DecodeStats([]byte("\x00\x01\x00\x01n"))
	require.ErrorIs(t, err, frame.ErrReply)
	_, err = frame.DecodeStats([]byte("\x00"))
	require.ErrorIs(t, err, frame.ErrReply)
	_, err = frame.DecodeEntry([]byte("\x00\x00\x00\x01\x00\x00\x00\x01\x00\x02n"))
	require.ErrorIs(t, err, frame.ErrReply)
	_, err = frame.DecodeEntry(nil)
	require.ErrorIs(t, err, frame.ErrReply)
}
