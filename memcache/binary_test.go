package memcache

import (
	"encoding/binary"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/record"
)

// message makes a request: extras as big-endian numbers of 4 or 8 bytes.
func message(op opcode, unique uint64, key, value string, extras ...any) []byte {
	var ext []byte
	for _, n := range extras {
		switch n := n.(type) {
		case uint32:
			ext = binary.BigEndian.AppendUint32(ext, n)
		case uint64:
			ext = binary.BigEndian.AppendUint64(ext, n)
		}
	}
	m := []byte{requestMagic, byte(op), byte(len(key) >> 8), byte(len(key)), byte(len(ext)), 0, 0, 0}
	m = binary.BigEndian.AppendUint32(m, uint32(len(ext)+len(key)+len(value)))
	m = append(m, 0xde, 0xad, 0xbe, byte(op))
	m = binary.BigEndian.AppendUint64(m, unique)
	return append(append(append(m, ext...), key...), value...)
}

// answer is a received reply.
type answer struct {
	op                 opcode
	status             status
	unique             uint64
	extras, key, value string
}

func (c *client) binary() answer {
	c.t.Helper()
	head := make([]byte, headerSize)
	_, err := io.ReadFull(c.r, head)
	require.NoError(c.t, err)
	body := make([]byte, binary.BigEndian.Uint32(head[8:]))
	_, err = io.ReadFull(c.r, body)
	require.NoError(c.t, err)
	require.Equal(c.t, byte(replyMagic), head[0])
	require.Equal(c.t, []byte{0xde, 0xad, 0xbe, head[1]}, head[12:16])
	ext, key := int(head[4]), int(binary.BigEndian.Uint16(head[2:]))
	return answer{opcode(head[1]), status(binary.BigEndian.Uint16(head[6:])), binary.BigEndian.Uint64(head[16:]),
		string(body[:ext]), string(body[ext : ext+key]), string(body[ext+key:])}
}

// call sends a request and returns the reply.
func (c *client) call(m []byte) answer {
	c.t.Helper()
	c.send("%s", m)
	return c.binary()
}

const never = uint32(0)

func TestBinaryProtocol(t *testing.T) {
	c := start(t, "opts=f", ":").dial(t)
	stored := c.call(message(opSet, 0, "a", "x", uint32(7), never))
	require.Equal(t, statusOK, stored.status)
	require.NotZero(t, stored.unique)
	require.Equal(t, answer{opGet, statusOK, stored.unique, "\x00\x00\x00\x07", "", "x"}, c.call(message(opGet, 0, "a", "")))
	require.Equal(t, answer{opGetK, statusOK, stored.unique, "\x00\x00\x00\x07", "a", "x"}, c.call(message(opGetK, 0, "a", "")))
	require.Equal(t, statusNotFound, c.call(message(opGet, 0, "z", "")).status)

	require.Equal(t, statusExists, c.call(message(opAdd, 0, "a", "y", uint32(0), never)).status)
	require.Equal(t, statusNotFound, c.call(message(opReplace, 0, "z", "y", uint32(0), never)).status)
	require.Equal(t, statusExists, c.call(message(opSet, stored.unique+1, "a", "y", uint32(0), never)).status)
	require.Equal(t, statusNotFound, c.call(message(opSet, 5, "z", "y", uint32(0), never)).status)
	require.Equal(t, statusOK, c.call(message(opSet, stored.unique, "a", "y", uint32(7), never)).status)
	require.Equal(t, statusOK, c.call(message(opAppend, 0, "a", "z")).status)
	require.Equal(t, statusOK, c.call(message(opPrepend, 0, "a", "x")).status)
	require.Equal(t, statusNotStored, c.call(message(opAppend, 0, "z", "z")).status)
	require.Equal(t, "xyz", c.call(message(opGet, 0, "a", "")).value)

	require.Equal(t, statusOK, c.call(message(opTouch, 0, "a", "", uint32(100))).status)
	require.Equal(t, "xyz", c.call(message(opGAT, 0, "a", "", uint32(100))).value)
	require.Equal(t, statusNotFound, c.call(message(opTouch, 0, "z", "", uint32(100))).status)
	require.Equal(t, statusNotNumber, c.call(message(opIncrement, 0, "a", "", uint64(1), uint64(0), never)).status)
	require.Equal(t, statusExists, c.call(message(opDelete, 5, "a", "")).status)
	require.Equal(t, statusOK, c.call(message(opDelete, 0, "a", "")).status)
	require.Equal(t, statusNotFound, c.call(message(opDelete, 0, "a", "")).status)
}

func TestBinaryCounters(t *testing.T) {
	c := start(t, "opts=f", ":").dial(t)
	number := func(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }
	require.Equal(t, statusNotFound, c.call(message(opIncrement, 0, "n", "", uint64(1), uint64(5), uint32(0xffffffff))).status)
	require.Equal(t, number(5), c.call(message(opIncrement, 0, "n", "", uint64(1), uint64(5), never)).value)
	require.Equal(t, number(6), c.call(message(opIncrement, 0, "n", "", uint64(1), uint64(5), never)).value)
	require.Equal(t, number(0), c.call(message(opDecrement, 0, "n", "", uint64(9), uint64(5), never)).value)
	require.Equal(t, "0", c.call(message(opGet, 0, "n", "")).value)
}

func TestQuietRequestsSayOnlyWhatMatters(t *testing.T) {
	c := start(t, "opts=f", ":").dial(t)
	for _, m := range [][]byte{
		message(opSetQ, 0, "a", "1", uint32(0), never), message(opAddQ, 0, "b", "2", uint32(0), never),
		message(opReplaceQ, 0, "a", "3", uint32(0), never), message(opAppendQ, 0, "a", "4"), message(opPrependQ, 0, "a", "5"),
		message(opIncrQ, 0, "a", "", uint64(1), uint64(0), never), message(opDecrQ, 0, "a", "", uint64(2), uint64(0), never),
		message(opGetQ, 0, "z", ""), message(opGetKQ, 0, "z", ""), message(opGATQ, 0, "z", "", never), message(opDeleteQ, 0, "b", ""),
		message(opGetKQ, 0, "a", ""), message(opAddQ, 0, "a", "9", uint32(0), never), message(opFlushQ, 0, "", ""),
	} {
		c.send("%s", m)
	}
	got := c.binary()
	require.Equal(t, answer{opGetKQ, statusOK, got.unique, "\x00\x00\x00\x00", "a", "533"}, got)
	require.Equal(t, statusExists, c.binary().status)
	require.Equal(t, answer{op: opNoop}, c.call(message(opNoop, 0, "", "")))
	c.send("%s", message(opQuitQ, 0, "", ""))
	c.ended()
}

func TestBinaryServices(t *testing.T) {
	c := start(t, "opts=f", ":").dial(t)
	require.Equal(t, ModernVersion, c.call(message(opVersion, 0, "", "")).value)
	require.Equal(t, statusOK, c.call(message(opVerbosity, 0, "", "", uint32(1))).status)
	require.Equal(t, statusUnknown, c.call(message(0x20, 0, "", "")).status) // SASL
	require.Equal(t, statusInvalid, c.call(message(opSet, 0, "a", "x")).status)
	require.Equal(t, statusInvalid, c.call(message(opGet, 0, "", "")).status)
	require.Equal(t, statusOK, c.call(message(opFlush, 0, "", "", uint32(1000))).status)
	c.send("%s", message(opStat, 0, "", ""))
	rows := 0
	for c.binary().key != "" {
		rows++
	}
	require.Greater(t, rows, 30)
	require.Equal(t, statusNotFound, c.call(message(opStat, 0, "nosuch", "")).status)
	require.Equal(t, statusOK, c.call(message(opQuit, 0, "", "")).status)
	c.ended()
}

func TestBrokenBinaryMessagesEndTheConnection(t *testing.T) {
	s := start(t, "opts=f#tout=1", ":")
	short := message(opGet, 0, "a", "")
	short[3] = 9 // longer than the body
	huge := message(opSet, 0, "a", "", uint32(0), never)
	huge[8] = 0xff
	for want, m := range map[status][]byte{statusInvalid: short, statusTooLarge: huge} {
		c := s.dial(t)
		require.Equal(t, want, c.call(m).status)
		c.ended()
	}
}

func TestReadOnlyService(t *testing.T) {
	s := start(t, "opts=fr", ":")
	require.NoError(t, s.db.Set(nil, []byte("a"), []byte("x\x00\x00\x00\x00"), record.Never))
	_, _, before, err := s.db.GetUnique(nil, nil, []byte("a"))
	require.NoError(t, err)
	const refused = "SERVER_ERROR server is read-only\n"
	c := s.dial(t)
	c.ask("mg a v t N10\n", "VA 1 t-1\nx\n")
	for _, op := range []opcode{opGAT, opGATQ, opGATK, opGATKQ, opTouch} {
		require.Equal(t, statusDenied, c.call(message(op, 0, "a", "", uint32(10))).status, "%x", op)
	}
	require.Equal(t, statusDenied, c.call(message(opSet, 0, "b", "x", uint32(0), never)).status)
	require.Equal(t, statusDenied, c.call(message(opDelete, 0, "a", "")).status)
	require.Equal(t, statusDenied, c.call(message(opFlush, 0, "", "")).status)
	for _, line := range []string{"touch a 10", "gat 10 a", "gats 10 a", "mg a v T10", "mg a T-1", "mg a q T10", "mg b T10", "mg b v N10",
		"ma a", "md a", "ms a S1", "delete a", "incr a 1", "flush_all"} {
		c.ask(line+"\n", refused)
	}
	_, xt, after, err := s.db.GetUnique(nil, nil, []byte("a"))
	require.NoError(t, err)
	require.Equal(t, record.MaxXT, xt)
	require.Equal(t, before, after)
	n, err := s.db.Count(nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

func TestBinaryMessagesOfAQueue(t *testing.T) {
	c := start(t, "opts=fq#qtout=0.05", "%").dial(t)
	require.Equal(t, statusNotFound, c.call(message(opGet, 0, "job", "")).status)
	for i := range 2 {
		require.Equal(t, statusOK, c.call(message(opSet, 0, "job", fmt.Sprint(i), uint32(3), never)).status)
	}
	require.Equal(t, "0", c.call(message(opGet, 0, "job", "")).value)
	require.Equal(t, "1", c.call(message(opGetKQ, 0, "job", "")).value)
	require.Equal(t, statusOK, c.call(message(opDelete, 0, "job", "")).status)
	require.Equal(t, statusOK, c.call(message(opDelete, 0, "job", "")).status)
	require.Equal(t, statusNotFound, c.call(message(opDelete, 0, "job", "")).status)
	begun := time.Now()
	c.send("%s%s", message(opGetQ, 0, "job", ""), message(opNoop, 0, "", ""))
	require.Equal(t, opNoop, c.binary().op)
	require.Less(t, time.Since(begun), patience)
}
