package binproto_test

import (
	"bytes"
	"io"
	"iter"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/binproto"
	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/internal/netio"
)

// What there is no memory for is refused before it is read: the answer comes although the client
// sends no more.
func TestWhatThereIsNoMemoryForIsRefused(t *testing.T) {
	f := newFixture(t, db.Options{}, "%", t.TempDir()+"/a.kct")
	var limits netio.Limits
	limits.SetBudget(4 << 20)
	f.limits.Limits = &limits
	for i := range 100 {
		require.NoError(t, f.catalog.DB(0).Set(nil, []byte{byte(i)}, make([]byte, 50_000), record.Never))
	}
	header := func(m frame.Magic, n int) []byte {
		return frame.AppendHeader(nil, frame.Header{Magic: m, RNum: uint32(n)})
	}
	everything := header(frame.GetBulk, 100)
	for i := range 100 {
		everything = frame.AppendKey(everything, frame.Key{Key: []byte{byte(i)}})
	}
	large := frame.AppendRecord(header(frame.SetBulk, 1), frame.Record{Key: []byte("a"), Value: make([]byte, 2<<20)})
	longKey := frame.AppendKey(header(frame.RemoveBulk, 1), frame.Key{DBIdx: 1, Key: make([]byte, 100_000)})
	for name, request := range map[string][]byte{
		"a value":                  large[:30],
		"a key":                    frame.AppendKey(header(frame.GetBulk, 1), frame.Key{Key: make([]byte, 2<<20)})[:20],
		"a key that a file cannot": longKey[:20],
		"a reply":                  everything,
	} {
		require.Equal(t, []byte{byte(frame.Error)}, f.exchange(t, request), name)
		require.Zero(t, limits.Held(), name)
	}
	some := header(frame.GetBulk, 20)
	for i := range 20 {
		some = frame.AppendKey(some, frame.Key{Key: []byte{byte(i)}})
	}
	reply := f.exchange(t, some)
	require.Equal(t, byte(frame.GetBulk), reply[0])
	require.Greater(t, len(reply), 20*50_000)
	require.Equal(t, byte(frame.SetBulk), f.exchange(t, frame.AppendRecord(header(frame.SetBulk, 1),
		frame.Record{Key: []byte("a"), Value: bytes.Repeat([]byte("x"), 1<<20)}))[0])
	require.Zero(t, limits.Held())
}

// verbose is a script whose procedures have one value as their output.
type verbose []byte

// Call implements binproto.Scripts.
func (v verbose) Call(_ db.Heed, _ *db.Pending, _ string, _ iter.Seq2[[]byte, []byte], out func(key, value []byte)) int {
	out([]byte("k"), v)
	return 0
}

// What a procedure returns is copied once, into the reply.
func TestTheOutputOfAProcedureIsCopiedOnce(t *testing.T) {
	f := newFixture(t, db.Options{}, "%")
	output := make(verbose, 64<<20)
	f.handler = binproto.NewHandler(binproto.Options{Catalog: f.catalog.View, Scripts: output})
	server, client := socketPair(t)
	go f.serve(server)
	want := frame.AppendPair(reply(frame.PlayScript, 1), frame.Pair{Key: []byte("k"), Value: output})
	got := make([]byte, len(want))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := client.Write(frame.AppendScript(nil, frame.Script{Name: []byte("f")}))
	require.NoError(t, err)
	_, err = io.ReadFull(client, got)
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	require.True(t, bytes.Equal(want, got))
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(len(output)*3/2))
}

// A large reply behind one that has not been sent yet is not copied: memory was counted for it
// once.
func TestALargeReplyBehindAnotherIsNotCopied(t *testing.T) {
	f := newFixture(t, db.Options{}, "%")
	large := make([]byte, 64<<20)
	output := make(verbose, len(large))
	f.handler = binproto.NewHandler(binproto.Options{Catalog: f.catalog.View, Scripts: output})
	require.NoError(t, f.catalog.DB(0).Set(nil, []byte("large"), large, record.Never))
	first := frame.AppendKey(frame.AppendHeader(nil, frame.Header{Magic: frame.GetBulk, RNum: 1}), frame.Key{Key: []byte("none")})
	for name, second := range map[string][]byte{
		"get_bulk":    frame.AppendKey(frame.AppendHeader(nil, frame.Header{Magic: frame.GetBulk, RNum: 1}), frame.Key{Key: []byte("large")}),
		"play_script": frame.AppendScript(nil, frame.Script{Name: []byte("f")}),
	} {
		cost := func(request []byte) uint64 {
			server, client := socketPair(t)
			go func() { f.serve(server); server.Close() }()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := client.Write(request)
			require.NoError(t, err)
			require.NoError(t, client.(*net.TCPConn).CloseWrite())
			got, err := io.Copy(io.Discard, client)
			require.NoError(t, err)
			require.Greater(t, got, int64(len(large)), name)
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		alone := cost(second)
		require.Less(t, cost(append(first[:len(first):len(first)], second...)), alone+uint64(len(large))/2, name)
	}
}

// Values of several pieces arrive whole, also behind another reply.
func TestLargeValuesOfAReply(t *testing.T) {
	f := newFixture(t, db.Options{}, "%")
	large := bytes.Repeat([]byte("0123456789a"), 100_000)
	require.NoError(t, f.catalog.DB(0).Set(nil, []byte("large"), large, record.Never))
	require.NoError(t, f.catalog.DB(0).Set(nil, []byte("small"), []byte("x"), record.Never))
	get := frame.AppendHeader(nil, frame.Header{Magic: frame.GetBulk, RNum: 3})
	want := frame.AppendReply(nil, frame.GetBulk, 3)
	for _, key := range []string{"large", "small", "large"} {
		value := large
		if key == "small" {
			value = []byte("x")
		}
		get = frame.AppendKey(get, frame.Key{Key: []byte(key)})
		want = frame.AppendRecord(want, frame.Record{XT: record.MaxXT, Key: []byte(key), Value: value})
	}
	require.True(t, bytes.Equal(append(want[:len(want):len(want)], want...), f.exchange(t, append(get[:len(get):len(get)], get...))))
}
