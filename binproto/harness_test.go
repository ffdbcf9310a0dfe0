package binproto_test

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/binproto"
	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/internal/netio"
	"gotycoon/internal/opcount"
)

// fixture is a handler with its databases.
type fixture struct {
	catalog *db.Catalog
	counts  opcount.Counts
	log     bytes.Buffer
	handler *binproto.Handler
	limits  netio.Options
}

func newFixture(tb testing.TB, o db.Options, exprs ...string) *fixture {
	tb.Helper()
	catalog, err := db.Open(exprs, o)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, catalog.Close()) })
	f := &fixture{catalog: catalog, limits: netio.Options{Timeout: time.Minute}}
	f.handler = binproto.NewHandler(binproto.Options{Catalog: catalog.View, Counts: &f.counts, Logger: bareLogger(&f.log)})
	return f
}

// bareLogger writes level and message only.
func bareLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// serve answers requests on c until one of them ends the connection.
func (f *fixture) serve(c net.Conn) {
	conn := netio.New(c, netio.NewPool(), f.limits)
	defer conn.Close()
	for conn.WaitByte() == nil {
		if !f.handler.ServeOne(conn, "peer") {
			_ = conn.Flush()
			return
		}
	}
}

// exchange sends request, ends sending, and returns everything that came back.
func (f *fixture) exchange(t *testing.T, request []byte) []byte {
	t.Helper()
	return f.exchangePieces(t, [][]byte{request})
}

func (f *fixture) exchangePieces(t *testing.T, pieces [][]byte) []byte {
	t.Helper()
	server, client := socketPair(t)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { f.serve(server); server.Close() })
	wg.Go(func() {
		for _, p := range pieces {
			if _, err := client.Write(p); err != nil {
				return // refused on the way
			}
		}
		_ = client.(*net.TCPConn).CloseWrite()
	})
	got, err := io.ReadAll(client)
	require.NoError(t, err)
	if len(got) == 0 {
		return nil
	}
	return got
}

func socketPair(t *testing.T) (server, client net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	client, err = net.Dial("tcp4", ln.Addr().String())
	require.NoError(t, err)
	server, err = ln.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { server.Close(); client.Close() })
	return server, client
}

// Requests.

func setBulk(flags uint32, recs ...frame.Record) []byte {
	p := frame.AppendHeader(nil, frame.Header{Magic: frame.SetBulk, Flags: flags, RNum: uint32(len(recs))})
	for _, r := range recs {
		p = frame.AppendRecord(p, r)
	}
	return p
}

func keysBulk(m frame.Magic, flags uint32, keys ...frame.Key) []byte {
	p := frame.AppendHeader(nil, frame.Header{Magic: m, Flags: flags, RNum: uint32(len(keys))})
	for _, k := range keys {
		p = frame.AppendKey(p, k)
	}
	return p
}

func rec(dbidx uint16, key, value string) frame.Record {
	return frame.Record{DBIdx: dbidx, XT: int64(record.Never), Key: []byte(key), Value: []byte(value)}
}

func key(dbidx uint16, key string) frame.Key { return frame.Key{DBIdx: dbidx, Key: []byte(key)} }

// Replies.

func reply(m frame.Magic, n int) []byte { return frame.AppendReply(nil, m, uint32(n)) }

func getReply(recs ...frame.Record) []byte {
	p := reply(frame.GetBulk, len(recs))
	for _, r := range recs {
		p = frame.AppendRecord(p, r)
	}
	return p
}

// hit is a record without expiration time as a reply has it.
func hit(dbidx uint16, key, value string) frame.Record {
	r := rec(dbidx, key, value)
	r.XT = record.MaxXT
	return r
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
