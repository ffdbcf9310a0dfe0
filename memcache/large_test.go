package memcache

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/internal/netio"
)

// largeData is data of n bytes that differ from place to place.
func largeData(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i) ^ byte(i>>8) ^ byte(i>>16)
	}
	return p
}

// Large data are stored from where they were read to, with the flags behind them. The next request,
// whose first bytes the flags cover for a moment, must be served as usual.
func TestLargeDataInPlace(t *testing.T) {
	for _, options := range []string{"", "opts=f", "opts=fm"} {
		t.Run(options, func(t *testing.T) {
			path := "%"
			s := start(t, options, path)
			flags := func(n int) int {
				if options == "" {
					return 0
				}
				return n
			}
			a, b := largeData(3<<20), largeData(1<<20)
			c := s.dial(t)
			c.send("set a 7 0 %d\r\n%s\r\nset b 8 0 %d\r\n%s\r\nset c 9 0 1\r\nx\r\n", len(a), a, len(b), b)
			c.expect("STORED\r\nSTORED\r\nSTORED\r\n")
			c.send("add a 1 0 %d\r\n%s\r\nreplace d 1 0 %d\r\n%s\r\nadd d 5 0 %d\r\n%s\r\nreplace b 6 0 %d\r\n%s\r\n", len(b), b, len(b), b, len(b), b, len(a), a)
			c.expect("NOT_STORED\r\nNOT_STORED\r\nSTORED\r\nSTORED\r\n")
			if options == "opts=fm" {
				c.send("append d 0 0 1\r\n!\r\nms e %d F4 c\r\n%s\r\n", len(a), a)
				c.expect("STORED\r\n")
				require.Regexp(t, "HD c[0-9]+", c.line())
				c.send("get e\r\n")
				c.expect(fmt.Sprintf("VALUE e 4 %d\r\n%s\r\nEND\r\n", len(a), a))
				c.send("replace d 5 0 %d\r\n%s\r\n", len(b), b)
				c.expect("STORED\r\n")
				c.send("%s", binarySet("f", 3, a))
				c.send("%s", binarySet("g", 2, []byte("y")))
				got := make([]byte, 2*headerSize)
				c.expect("\x81\x01\x00\x00\x00\x00\x00\x00")
				_, err := c.r.Read(got[:headerSize-8])
				require.NoError(t, err)
				c.expect("\x81\x01\x00\x00\x00\x00\x00\x00")
				_, err = c.r.Read(got[:headerSize-8])
				require.NoError(t, err)
				c.send("get f g\r\n")
				c.expect(fmt.Sprintf("VALUE f 3 %d\r\n%s\r\nVALUE g 2 1\r\ny\r\nEND\r\n", len(a), a))
			}
			c.send("get a b c d\r\n")
			c.expect(fmt.Sprintf("VALUE a %d %d\r\n%s\r\nVALUE b %d %d\r\n%s\r\nVALUE c %d 1\r\nx\r\nVALUE d %d %d\r\n%s\r\nEND\r\n",
				flags(7), len(a), a, flags(6), len(a), a, flags(9), flags(5), len(b), b))
		})
	}
}

func binarySet(key string, flags uint32, data []byte) []byte {
	m := make([]byte, headerSize, headerSize+8+len(key)+len(data))
	m[0], m[1], m[4] = requestMagic, byte(opSet), 8
	binary.BigEndian.PutUint16(m[2:], uint16(len(key)))
	binary.BigEndian.PutUint32(m[8:], uint32(8+len(key)+len(data)))
	m = binary.BigEndian.AppendUint32(m, flags)
	m = append(m, 0, 0, 0, 0)
	return append(append(m, key...), data...)
}

// allocatedBy returns the bytes of Go's heap that do takes.
func allocatedBy(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A large item is in the connection's buffer and in the store, and nowhere else.
func TestALargeItemTakesTwiceItsSize(t *testing.T) {
	const size = 64 << 20
	s := start(t, "opts=fm", "%")
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for name, head := range map[string][]byte{
		"text":   fmt.Appendf(nil, "set a 1 0 %d\r\n", size),
		"binary": binarySet("a", 1, make([]byte, size))[:headerSize+9],
	} {
		c := s.dial(t)
		allocated := allocatedBy(func() {
			_, err := c.Write(head)
			require.NoError(t, err)
			for range size / len(piece) {
				_, err := c.Write(piece)
				require.NoError(t, err)
			}
			if name == "text" {
				c.send("\r\n")
				c.expect("STORED\r\n")
			} else {
				c.expect("\x81\x01")
			}
		})
		require.Less(t, allocated, uint64(size*5/2), "%s: buffers, and the record where it is in Go's heap (race detector)", name)
	}
}

// startWithin is start where requests may hold so many bytes.
func startWithin(t *testing.T, plex string, budget int64) (*started, *netio.Limits) {
	t.Helper()
	catalog, err := db.Open([]string{"%"}, db.Options{})
	require.NoError(t, err)
	limits := new(netio.Limits)
	limits.SetBudget(budget)
	server, err := New(Options{Config: ParseConfig(plex), DB: catalog.DB(0), Limits: limits})
	require.NoError(t, err)
	s := &started{Server: server, db: catalog.DB(0), catalog: catalog}
	s.open(t)
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.NoError(t, catalog.Close())
	})
	return s, limits
}

// A client whose request has been read whole goes on after it was refused for lack of memory. A
// client whose request has not been read whole is disconnected, because the rest would be taken for
// commands.
func TestOutOfMemoryAndTheConnection(t *testing.T) {
	const memory = "SERVER_ERROR out of memory\n"
	s, _ := startWithin(t, "opts=f", 1<<20)
	require.NoError(t, s.db.Set(nil, []byte("large"), largeData(2<<20), record.Never))
	c := s.dial(t)
	for range 3 {
		c.ask("get large\nmg large v\ngat 0 large\nappend large 0 0 1\nx\nversion\n", memory+memory+memory+memory+"VERSION "+ModernVersion+"\n")
		require.Equal(t, statusNoMemory, c.call(message(opGet, 0, "large", "")).status)
	}
	c.ask("set a 0 0 2000000\n", memory)
	c.ended()
	c = s.dial(t)
	c.send("%s", message(opSet, 0, "a", string(make([]byte, 2_000_000)), uint32(0), never)[:headerSize])
	require.Equal(t, statusNoMemory, c.binary().status)
	c.ended()
}

// Messages that a client has taken and not deleted are in memory, and count.
func TestMessagesTakenCount(t *testing.T) {
	s, limits := startWithin(t, "opts=q", 8<<20)
	c := s.dial(t)
	message := largeData(100_000)
	for range 10 {
		c.send("set q 0 0 %d\r\n%s\r\n", len(message), message)
		c.expect("STORED\r\n")
	}
	for range 10 {
		c.send("get q\r\n")
		c.expect(fmt.Sprintf("VALUE q 0 %d\r\n%s\r\nEND\r\n", len(message), message))
	}
	require.Greater(t, limits.Held(), int64(10*len(message)))
	for range 10 {
		c.ask("delete q\n", "DELETED\n")
	}
	require.Less(t, limits.Held(), int64(1<<20))
}

// The replies to one command are sent as they grow: a get with half a million keys must not gather
// half a million items.
func TestItemsOfALongLineAreSentOnTheWay(t *testing.T) {
	s := start(t, "opts=fm", "%")
	data := largeData(60_000)
	c := s.dial(t)
	c.send("set a 0 0 %d\r\n%s\r\n", len(data), data)
	c.expect("STORED\r\n")
	for _, command := range []string{"get", "gat 0", "gats 0"} {
		const items = 2000
		allocated := allocatedBy(func() {
			c.send("%s%s\r\n", command, strings.Repeat(" a", items))
			for range items {
				require.Regexp(t, "VALUE a 0 60000( [0-9]+)?", c.line())
				_, err := c.r.Discard(len(data) + 2)
				require.NoError(t, err)
			}
			c.expect("END\r\n")
		})
		require.Less(t, allocated, uint64(3*items*len(data)), "%s: the item is read, and no more", command)
	}
}

func TestMessagesOfALongLineAreSentOnTheWay(t *testing.T) {
	s := start(t, "opts=q#qtout=60", "%")
	data := largeData(60_000)
	c := s.dial(t)
	const messages = 1000
	for range messages {
		c.send("set q 0 0 %d\r\n%s\r\n", len(data), data)
		c.expect("STORED\r\n")
	}
	allocated := allocatedBy(func() {
		c.send("get%s\r\n", strings.Repeat(" q", messages))
		for range messages {
			require.Equal(t, "VALUE q 0 60000", c.line())
			_, err := c.r.Discard(len(data) + 2)
			require.NoError(t, err)
		}
		c.expect("END\r\n")
	})
	require.Less(t, allocated, uint64(2*messages*len(data)), "the messages are kept until they are deleted, and nothing else")
}
