package binproto_test

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/binproto"
	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/internal/netio"
)

var refused = []byte{byte(frame.Error)}

func TestConversations(t *testing.T) {
	cut := setBulk(0, rec(0, "a", "1"), rec(0, "b", "2"))
	tooLarge := join(setBulk(0, rec(0, "a", "1"))[:9], []byte{0, 0, 0x10, 0, 0, 1, 0, 0, 0, 0}, make([]byte, 8))
	cases := []struct {
		name string
		send []byte
		want []byte
	}{
		{"nothing asked", setBulk(0), reply(frame.SetBulk, 0)},
		{"set and get in two databases",
			join(setBulk(0, rec(0, "a", "1"), rec(1, "a", "2"), rec(0, "b", "")),
				keysBulk(frame.GetBulk, 0, key(1, "a"), key(0, "b"), key(0, "c"), key(0, "a"), key(0, "a"))),
			join(reply(frame.SetBulk, 3),
				getReply(hit(1, "a", "2"), hit(0, "b", ""), hit(0, "a", "1"), hit(0, "a", "1")))},
		{"the last value of a key set twice stays",
			join(setBulk(0, rec(0, "a", "1"), rec(0, "a", "2")), keysBulk(frame.GetBulk, 0, key(0, "a"))),
			join(reply(frame.SetBulk, 2), getReply(hit(0, "a", "2")))},
		{"a key removed twice counts once",
			join(setBulk(0, rec(0, "a", "1")), keysBulk(frame.RemoveBulk, 0, key(0, "a"), key(0, "a"), key(0, "x"))),
			join(reply(frame.SetBulk, 1), reply(frame.RemoveBulk, 1))},
		{"records of a database that does not exist are skipped",
			join(setBulk(0, rec(9, "a", "1"), rec(0, "a", "1")), keysBulk(frame.GetBulk, 0, key(9, "a"), key(0, "a")),
				keysBulk(frame.RemoveBulk, 0, key(65535, "a"), key(0, "a"))),
			join(reply(frame.SetBulk, 1), getReply(hit(0, "a", "1")), reply(frame.RemoveBulk, 1))},
		{"a database without expiration times says so",
			join(setBulk(0, frame.Record{DBIdx: 2, XT: 5, Key: []byte("a"), Value: []byte("1")}),
				keysBulk(frame.GetBulk, 0, key(2, "a"))),
			join(reply(frame.SetBulk, 1),
				getReply(frame.Record{DBIdx: 2, XT: math.MaxInt64, Key: []byte("a"), Value: []byte("1")}))},
		{"no reply to updates, but to a get",
			join(setBulk(frame.NoReply, rec(0, "a", "1")), keysBulk(frame.GetBulk, frame.NoReply, key(0, "a")),
				keysBulk(frame.RemoveBulk, frame.NoReply, key(0, "a")), keysBulk(frame.GetBulk, 0, key(0, "a"))),
			join(getReply(hit(0, "a", "1")), getReply())},
		{"cut in the header", cut[:5], nil},
		{"cut in a record", cut[:len(cut)-1], refused},
		{"size over the limit", tooLarge, refused},
		{"nothing is served behind a failure", join(tooLarge, setBulk(0)), refused},
		{"results before a failing key are not sent",
			join(setBulk(0, rec(0, "a", "1")), keysBulk(frame.GetBulk, 0, key(0, "a"), key(0, "b"))[:17]),
			join(reply(frame.SetBulk, 1), refused)},
		{"unknown magic", []byte{0xC0, 0xB8}, nil},
		{"a heartbeat begins no request", []byte{byte(frame.Heartbeat)}, nil},
		{"replication without a log", frame.AppendFollow(nil, frame.Follow{}), refused},
		{"replication cut", frame.AppendFollow(nil, frame.Follow{})[:14], nil},
		{"no procedures, but the connection goes on",
			join(playScript(0), setBulk(0)), join(refused, reply(frame.SetBulk, 0))},
		{"no procedures and no reply", join(playScript(frame.NoReply), setBulk(0)), reply(frame.SetBulk, 0)},
		{"play_script cut in a pair", playScript(0)[:20], nil},
		{"play_script with a size over the limit",
			join(playScript(0)[:17], []byte{0x10, 0, 0, 1, 0, 0, 0, 0}), nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, db.Options{}, ":", "%", ":#ktopts=p")
			require.Equal(t, c.want, f.exchange(t, c.send))
		})
	}
}

func playScript(flags uint32) []byte {
	p := frame.AppendScript(nil, frame.Script{Flags: flags, RNum: 1, Name: []byte("proc")})
	return frame.AppendPair(p, frame.Pair{Key: []byte("key"), Value: []byte("value")})
}

// TestPieces sends requests one byte at a time: nothing may depend on what arrives together.
func TestPieces(t *testing.T) {
	f := newFixture(t, db.Options{}, ":", "%")
	send := join(setBulk(0, rec(0, "a", "1"), rec(1, "b", "22"), rec(1, "c", "")), playScript(0),
		keysBulk(frame.GetBulk, 0, key(1, "c"), key(1, "b"), key(0, "a")), keysBulk(frame.RemoveBulk, 0, key(1, "b")))
	var pieces [][]byte
	for i := range send {
		pieces = append(pieces, send[i:i+1])
	}
	want := join(reply(frame.SetBulk, 3), refused,
		getReply(hit(1, "c", ""), hit(1, "b", "22"), hit(0, "a", "1")), reply(frame.RemoveBulk, 1))
	require.Equal(t, want, f.exchangePieces(t, pieces))
}

// TestLargeRequestIsStreamed has a read buffer far smaller than the request.
func TestLargeRequestIsStreamed(t *testing.T) {
	f := newFixture(t, db.Options{}, "%")
	f.limits.MaxRequest = 32 << 10
	const n = 20_000
	recs := make([]frame.Record, n)
	keys := make([]frame.Key, n)
	hits := make([]frame.Record, n)
	for i := range n {
		name, value := fmt.Sprintf("key-%06d", i), strings.Repeat("v", i%300)
		recs[i], keys[i], hits[i] = rec(0, name, value), key(0, name), hit(0, name, value)
	}
	got := f.exchange(t, join(setBulk(0, recs...), keysBulk(frame.GetBulk, 0, keys...)))
	require.Equal(t, join(reply(frame.SetBulk, n), getReply(hits...)), got)
	count, err := f.catalog.DB(0).Count(nil)
	require.NoError(t, err)
	require.EqualValues(t, n, count)
}

// A single record may need a larger buffer than a run may hold.
func TestLargeRecord(t *testing.T) {
	f := newFixture(t, db.Options{}, ":")
	value := strings.Repeat("0123456789abcdef", 1<<18)
	got := f.exchange(t, join(setBulk(0, rec(0, "a", "1"), rec(0, "big", value), rec(0, "z", "2")),
		keysBulk(frame.GetBulk, 0, key(0, "z"), key(0, "big"))))
	require.Equal(t, join(reply(frame.SetBulk, 3), getReply(hit(0, "z", "2"), hit(0, "big", value))), got)
}

// TestEarlierRecordsStay cuts a request after every byte: what was complete before the cut is
// stored.
func TestEarlierRecordsStay(t *testing.T) {
	whole := setBulk(0, rec(0, "a", "1"), rec(0, "b", "2"))
	one := len(setBulk(0, rec(0, "a", "1")))
	for cut := frame.HeaderLen; cut < len(whole); cut++ {
		f := newFixture(t, db.Options{}, ":")
		require.Equal(t, refused, f.exchange(t, whole[:cut]))
		count, err := f.catalog.DB(0).Count(nil)
		require.NoError(t, err)
		require.Equal(t, cut >= one, count == 1, "cut at %d", cut)
	}
}

func TestReadOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "casket.kct")
	t.Run("prepare", func(t *testing.T) {
		f := newFixture(t, db.Options{}, file)
		require.Equal(t, reply(frame.SetBulk, 1), f.exchange(t, setBulk(0, rec(0, "a", "1"))))
	})
	t.Run("serve", func(t *testing.T) {
		f := newFixture(t, db.Options{ReadOnly: true}, file)
		require.Equal(t, refused, f.exchange(t, setBulk(0, rec(0, "a", "2"))))
		require.Empty(t, f.exchange(t, keysBulk(frame.RemoveBulk, frame.NoReply, key(0, "a"))))
		require.Equal(t, getReply(hit(0, "a", "1")), f.exchange(t, keysBulk(frame.GetBulk, 0, key(0, "a"))))
		require.Equal(t, []string{
			`level=ERROR msg="database error: 4: no permission: permission denied"`,
			`level=INFO msg="(peer): bin_set_bulk: 0"`,
			`level=ERROR msg="database error: 4: no permission: permission denied"`,
			`level=INFO msg="(peer): bin_remove_bulk: 0"`,
			`level=INFO msg="(peer): bin_get_bulk: 1"`,
		}, strings.Split(strings.TrimSpace(f.log.String()), "\n"))
	})
}

func TestLogLines(t *testing.T) {
	f := newFixture(t, db.Options{}, ":")
	f.exchange(t, join(setBulk(0), playScript(0), frame.AppendFollow(nil, frame.Follow{})))
	f.exchange(t, []byte{0})
	require.Equal(t, []string{
		`level=INFO msg="(peer): bin_set_bulk: 1"`,
		`level=INFO msg="(peer): bin_play_script: 1"`,
		`level=INFO msg="no update log allows no replication"`,
		`level=INFO msg="(peer): bin_replication: 0"`,
		`level=INFO msg="(peer): bin_unknown: 0"`,
	}, strings.Split(strings.TrimSpace(f.log.String()), "\n"))
}

// fakeSource answers with the follower's own words.
type fakeSource struct{}

func (fakeSource) Copying(string, frame.CopyRequest) func() { return func() {} }

func (fakeSource) Serve(c *netio.Conn, f frame.Follow, _ string) {
	c.Out = fmt.Appendf(append(c.Out, byte(frame.Replication)), "%d %d %d", f.Flags, f.TS, f.SID)
}

func TestReplicationIsHandedOn(t *testing.T) {
	f := newFixture(t, db.Options{}, ":")
	f.handler = binproto.NewHandler(binproto.Options{Catalog: f.catalog.View, Source: fakeSource{}})
	follow := frame.AppendFollow(nil, frame.Follow{Flags: frame.WhiteSID, TS: 12, SID: 7})
	got := f.exchange(t, join(setBulk(0), follow, setBulk(0)))
	require.Equal(t, join(reply(frame.SetBulk, 0), []byte("\xb11 12 7")), got, "nothing is served behind the stream")
}

func TestCounters(t *testing.T) {
	f := newFixture(t, db.Options{}, ":", "%")
	f.exchange(t, join(
		setBulk(0, rec(0, "a", "1"), rec(1, "b", "2"), rec(7, "c", "3")),
		keysBulk(frame.GetBulk, 0, key(0, "a"), key(0, "x"), key(0, "y"), key(7, "a")),
		keysBulk(frame.RemoveBulk, 0, key(1, "b"), key(1, "x"), key(7, "b")),
		playScript(0)))
	c := &f.counts
	got := map[string]int64{"set": c.Set.Load(), "set misses": c.SetMisses.Load(),
		"get": c.Get.Load(), "get misses": c.GetMisses.Load(), "remove": c.Remove.Load(),
		"remove misses": c.RemoveMisses.Load(), "script": c.Script.Load(), "misc": c.Misc.Load()}
	require.Equal(t, map[string]int64{"set": 2, "set misses": 0, "get": 3, "get misses": 2, "remove": 2,
		"remove misses": 1, "script": 0, "misc": 0}, got)
}
