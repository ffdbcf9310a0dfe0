package remote

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/internal/vfs"
)

// TestFeedWaitsForAServerThatReadsItsLog has a server that is silent before its first heartbeat, as
// an original with a long log is, for longer than it may be silent after it. The feed must not
// begin anew, and must leave the connection that falls silent after the heartbeat.
func TestFeedWaitsForAServerThatReadsItsLog(t *testing.T) {
	const beat = 50 * time.Millisecond
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	asked := make(chan uint64, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				var request [15]byte
				if _, err := io.ReadFull(c, request[:]); err != nil || request[0] != 0xB1 {
					_, _ = io.WriteString(c, "HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
					return
				}
				after := binary.BigEndian.Uint64(request[5:])
				asked <- after
				//lint:sleep the silence is what the test is about
				time.Sleep(3 * beat)
				update := binary.BigEndian.AppendUint64([]byte{0xB1, 0xB1}, after+1)
				_, _ = c.Write(append(update, 0, 0, 0, 7, 0, 7, 0, 0, 0xA2, 1, 'k'))
				//lint:sleep and once more
				time.Sleep(3 * beat)
				_, _ = c.Write(binary.BigEndian.AppendUint64([]byte{0xB0}, after+1))
				_, _ = io.Copy(io.Discard, c) // until the other side gives up
			}()
		}
	}()
	defer l.Close()

	var stdout, stderr strings.Builder
	c := newCall("slave", nil, strings.NewReader(""), &stdout, &stderr)
	sid, yes, no := int64(0), true, false
	c.client = client.New(l.Addr().String(), client.Options{})
	f := &follower{call: c, sid: &sid, white: &no, wait: &yes, accept: &no, limits: silence{scan: time.Minute, beat: beat}}
	r := &feed{follower: f, to: f, file: &positionFile{fs: vfs.OS{}}, pause: firstPause}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.run(ctx) }()
	for want := range uint64(2) {
		select {
		case have := <-asked:
			require.Equal(t, want, have, "the feed begins anew behind what it has got")
		case <-time.After(10 * time.Second):
			require.Fail(t, "not connected again")
		}
	}
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, c.End(nil))
	require.True(t, strings.HasPrefix(stdout.String(), "1\t7\t0\tremove\taw==\n"))
	require.Contains(t, stderr.String(), "the server has sent nothing for too long")
}
