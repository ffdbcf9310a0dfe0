package binproto_test

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/internal/netio"
)

// script is a connection whose client has sent everything at once and takes whatever comes.
type script struct {
	net.Conn // nil: nothing else is called
	in       io.Reader
	out      bytes.Buffer
}

func (s *script) Read(p []byte) (int, error)       { return s.in.Read(p) }
func (s *script) Write(p []byte) (int, error)      { return s.out.Write(p) }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// FuzzServe sends arbitrary bytes. The replies must be ones that a client can read: whole, and
// nothing behind Error except after play_script. How the bytes are cut into pieces must not matter.
func FuzzServe(f *testing.F) {
	f.Add(setBulk(0, rec(0, "a", "1"), rec(1, "b", "2")), 3)
	f.Add(join(setBulk(1, rec(0, "a", "1")), keysBulk(frame.GetBulk, 0, key(0, "a"), key(1, "b"))), 7)
	f.Add(keysBulk(frame.RemoveBulk, 0, key(0, "a"), key(9, "a")), 1)
	f.Add(join(playScript(0), playScript(1), setBulk(0)), 2)
	f.Add(frame.AppendFollow(nil, frame.Follow{}), 100)
	f.Add([]byte{0xC0}, 1)
	f.Fuzz(func(t *testing.T, p []byte, piece int) {
		whole := replies(t, bytes.NewReader(p))
		cut := replies(t, &pieces{rest: p, size: max(piece, 1)})
		require.Equal(t, whole, cut)
		requireReadable(t, whole)
	})
}

// replies serves what in delivers and returns what the client gets.
func replies(t *testing.T, in io.Reader) []byte {
	f := newFixture(t, db.Options{}, ":", "%")
	f.limits = netio.Options{Timeout: time.Minute, MaxRequest: 1 << 20}
	c := &script{in: in}
	f.serve(c)
	return c.out.Bytes()
}

// pieces delivers bytes a few at a time.
type pieces struct {
	rest []byte
	size int
}

func (r *pieces) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.rest[:min(r.size, len(r.rest))])
	r.rest = r.rest[n:]
	return n, nil
}

func requireReadable(t *testing.T, p []byte) {
	for len(p) > 0 {
		if p[0] == byte(frame.Error) {
			p = p[1:]
			continue
		}
		m := frame.Magic(p[0])
		n, used, err := frame.DecodeReply(p, m)
		require.NoError(t, err)
		p = p[used:]
		if m != frame.GetBulk {
			require.Contains(t, []frame.Magic{frame.SetBulk, frame.RemoveBulk}, m)
			continue
		}
		for range n {
			_, used, err := frame.DecodeRecord(p)
			require.NoError(t, err)
			p = p[used:]
		}
	}
}
