package server_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/internal/freeport"
	"gotycoon/server"
)

// dialPort opens a raw connection to another port of a server in this process.
func dialPort(t *testing.T, port int) *client {
	t.Helper()
	var c net.Conn
	eventually(t, func() (ok bool) {
		var err error
		c, err = net.Dial("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		return err == nil
	})
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	return &client{t: t, Conn: c, in: bufio.NewReader(c)}
}

// line reads a line without its end.
func (c *client) line() string {
	c.t.Helper()
	text, err := c.in.ReadString('\n')
	require.NoError(c.t, err)
	return strings.TrimRight(text, "\r\n")
}

// bytes reads n bytes.
func (c *client) bytes(n int) []byte {
	c.t.Helper()
	p := make([]byte, n)
	_, err := io.ReadFull(c.in, p)
	require.NoError(c.t, err)
	return p
}

// TestMemcachedTellsWhatIsNotConfirmed: each request is the first one that waits for the follower
// that does not come, or is refused at once.
func TestMemcachedTellsWhatIsNotConfirmed(t *testing.T) {
	port := freeport.Take(t)
	master := startConfirmed(t, 1, func(c *server.Config) {
		c.Sync.Timeout = shortWait
		c.Plugins.MemcachePort, c.Plugins.MemcacheOptions = port, "fm"
	})
	c := dialPort(t, port)
	c.send("version\r\nset a 0 0 1 noreply\r\nx\r\nset b 0 0 1\r\nx\r\nversion\r\n")
	require.Contains(t, c.line(), "VERSION")
	require.Contains(t, c.line(), "SERVER_ERROR stored here, not confirmed by 1 follower")
	require.Contains(t, c.line(), "VERSION")
	c.send("set c 0 0 1\r\nx\r\n")
	require.Contains(t, c.line(), "SERVER_ERROR the update is refused, nothing has changed")
	c.send("ms d 1 q\r\nx\r\nmn\r\n")
	require.Contains(t, c.line(), "SERVER_ERROR", "a quiet command hides its failure")
	require.Equal(t, "MN", c.line())

	set := make([]byte, 24+8+2)
	set[0], set[1], set[3], set[4], set[11] = 0x80, 0x01, 1, 8, 10
	binary.BigEndian.PutUint32(set[12:], 4711)
	copy(set[32:], "ex")
	c.send(string(set))
	head := c.bytes(24)
	require.EqualValues(t, 0x86, binary.BigEndian.Uint16(head[6:]))
	require.EqualValues(t, 4711, binary.BigEndian.Uint32(head[12:]))
	c.bytes(int(binary.BigEndian.Uint32(head[8:])))

	startFollower(t, master, 2)
	eventually(t, func() bool { c.send("set c 0 0 1\r\nx\r\n"); return c.line() == "STORED" })
	c.send("get a\r\n")
	require.Equal(t, "VALUE a 0 1", c.line())
}

// setBulkOf is a set_bulk of one record that asks for followers.
func setBulkOf(flags uint32, key string) []byte {
	b := frame.AppendHeader(nil, frame.Header{Magic: frame.SetBulk, Flags: flags, RNum: 1})
	return frame.AppendRecord(b, frame.Record{Key: []byte(key), Value: []byte("x"), XT: 1 << 40})
}

func TestBinaryRequestsAskForFollowers(t *testing.T) {
	master := startConfirmed(t, 0, func(c *server.Config) { c.Sync.Timeout = shortWait })
	c := master.dial()
	const oneFollower = 1 << 24
	plain, asking := setBulkOf(0, "a"), setBulkOf(oneFollower, "b")
	silent := setBulkOf(frame.NoReply|oneFollower, "c")
	c.send(string(plain) + string(silent) + string(asking) + string(plain))
	require.Equal(t, byte(frame.SetBulk), c.bytes(frame.ReplyLen)[0])
	require.Equal(t, byte(frame.Error), c.bytes(1)[0])
	require.Equal(t, byte(frame.SetBulk), c.bytes(frame.ReplyLen)[0], "the connection goes on")
	startFollower(t, master, 2)
	eventually(t, func() bool {
		c := master.dial()
		c.send(string(asking))
		return c.bytes(1)[0] == byte(frame.SetBulk)
	})
}

// TestOnlyWhatStoresUpdatesConfirms has clients follow the log that acknowledge everything, and
// store nothing or not all: a slave of the original or ktremotemgr slave, a stream of one server's
// updates, and a server with the master's own ID.
func TestOnlyWhatStoresUpdatesConfirms(t *testing.T) {
	master := startConfirmed(t, 1, func(c *server.Config) { c.Sync.Timeout = time.Second })
	for _, follow := range []frame.Follow{
		{SID: 7}, {SID: 1, Flags: frame.Extended}, {SID: 1, Flags: frame.Extended | frame.WhiteSID}, {SID: 8, Flags: frame.Remaining},
	} {
		c := master.dial()
		c.send(string(frame.AppendFollow(nil, follow)))
		require.Equal(t, byte(frame.Replication), c.bytes(1)[0])
		go func() {
			var in []byte
			p := make([]byte, 4096)
			for {
				n, err := c.Read(p)
				if err != nil {
					return
				}
				in = append(in, p[:n]...)
				for {
					m, n, err := frame.DecodeMessage(in)
					if err != nil {
						break
					}
					in = in[n:]
					if m.Magic == frame.Heartbeat {
						_, _ = c.Write([]byte{byte(frame.Ack)})
					}
				}
			}
		}()
	}
	c := master.dial()
	status, body := c.get("/rpc/set?key=a&value=1")
	require.Equal(t, 503, status, body)
	require.Contains(t, body, "0 there, 1 missing")
}

// TestAScriptLearnsThatItsUpdateIsRefused calls a procedure while no follower is there.
func TestAScriptLearnsThatItsUpdateIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.lua")
	require.NoError(t, os.WriteFile(path, []byte(`
kt = __kyototycoon__
function put(inmap, outmap)
  outmap.stored = tostring(kt.db:set("k", "v"))
  outmap.error = tostring(kt.db:error())
  return kt.RVSUCCESS
end
`), 0o600))
	master := startConfirmed(t, 1, func(c *server.Config) {
		c.Sync.Timeout, c.Script.Path = shortWait, path
	})
	c := master.dial()
	status, body := c.get("/rpc/play_script?name=put")
	require.Equal(t, 503, status, body)
	require.Contains(t, body, "stored here")
	rows := c.rows("/rpc/play_script?name=put")
	require.Equal(t, "false", rows["_stored"])
	require.Contains(t, rows["_error"], "nothing has changed")
}
