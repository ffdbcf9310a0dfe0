package remote_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
)

// pairOf starts two servers that know nothing of each other.
func pairOf(t *testing.T, a, b []string) (one, two string) {
	t.Helper()
	bin := serverBin(t)
	s := ktproc.Start(t, ktproc.Options{Bin: bin, Dir: t.TempDir(), DBs: a})
	u := ktproc.Start(t, ktproc.Options{Bin: bin, Dir: t.TempDir(), DBs: b})
	return s.Addr(), u.Addr()
}

// put stores records key0… in a database of a server.
func put(t *testing.T, addr, db string, n int) *client.DB {
	t.Helper()
	c := client.New(addr, client.Options{})
	t.Cleanup(func() { _ = c.Close() })
	d := c.DB(db)
	for from := 0; from < n; from += 1000 {
		records := map[string][]byte{}
		for i := from; i < min(n, from+1000); i++ {
			records[fmt.Sprintf("key%07d", i)] = []byte("value")
		}
		_, err := d.SetBulk(t.Context(), records, client.Never, false)
		require.NoError(t, err)
	}
	return d
}

func TestCompare(t *testing.T) {
	const n = 3_000
	one, two := pairOf(t, []string{"a.kct", ":", ":"}, []string{"%", "b.kch", "%"})
	var sides [2][]*client.DB
	for i, addr := range []string{one, two} {
		for db := range 3 {
			sides[i] = append(sides[i], put(t, addr, strconv.Itoa(db), n))
		}
	}
	r := command(t, "", "compare", one, two)
	require.Equal(t, result{stdout: "0\tequal\t3000\t3000\t0\n1\tequal\t3000\t3000\t0\n2\tequal\t3000\t3000\t0\n"}, r)

	ctx := t.Context()
	require.NoError(t, sides[0][1].Remove(ctx, "key0000007"))
	require.NoError(t, sides[1][1].Remove(ctx, "key0002999"))
	require.NoError(t, sides[0][2].Set(ctx, "key0000100", []byte("value"), client.Expiry(-4_000_000_000)))
	require.NoError(t, sides[1][2].Set(ctx, "new", []byte("value"), client.Expiry(3))) // is left out
	want := "0\tequal\t3000\t3000\t0\n1\tdiffers\t2999\t2999\t2\n>\tkey0000007\n<\tkey0002999\n2\tdiffers\t3000\t3000\t1\n!\tkey0000100\n"
	host, port, _ := strings.Cut(one, ":")
	for _, args := range [][]string{{one, two}, {"-by", "hash", one, two}, {"-host", host, "-port", port, two}} {
		require.Equal(t, result{exit: 2, stdout: want}, command(t, "", append([]string{"compare", "-keys"}, args...)...), args)
	}
	require.Equal(t, result{stdout: "0\tequal\t3000\t3000\t0\n"}, command(t, "", "compare", "-db", "0", "-db2", "0", one, two))
	require.Equal(t, result{exit: 2, stdout: `{"counts":[3000,3000],"db":"2","keys":1,"more":false,"result":"differs"}` + "\n" + `{"differs":"!","key":"key0000100"}` + "\n"},
		command(t, "", "compare", "-json", "-keys", "-db", "2", one, two))
	require.Regexp(t, `^\{"count":3000,"from":"","sum":"[0-9a-f]{16}","to":""\}\n$`, command(t, "", "checksum", "-json", "-host", host, "-port", port).stdout)
	r = command(t, "", "compare", "-by", "key", "-db", "0", "-db2", "1", one, two)
	require.Equal(t, result{exit: 2, stdout: "0\tdiffers\t3000\t2999\t1\n"}, r)
	r = command(t, "", "compare", "-by", "key", "-db", "1", one, two)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "by=hash")
	r = command(t, "", "compare", one, "localhost:1")
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "6: network error")
}

// TestCompareEmpty compares much with nothing, in both directions.
func TestCompareEmpty(t *testing.T) {
	const n = 12_000
	for _, kind := range []string{"%", ":"} {
		one, two := pairOf(t, []string{kind}, []string{kind})
		put(t, two, "", n)
		r := command(t, "", "compare", one, two)
		require.Equal(t, 2, r.exit, r.stderr)
		require.Regexp(t, `^0\tdiffers\t0\t12000\t>=\d{3,5}\n$`, r.stdout)
		r = command(t, "", "compare", "-keys", two, one)
		require.Equal(t, 2, r.exit, r.stderr)
		require.Regexp(t, `^0\tdiffers\t12000\t0\t>=\d{3,5}\n<\tkey`, r.stdout)
	}
}

// TestCompareWhileReplicating compares a server with its standby while updates arrive all the time:
// they are equal, and after the standby has lost a record the comparison finds this record.
func TestCompareWhileReplicating(t *testing.T) {
	bin, dir := serverBin(t), t.TempDir()
	master := logged(t, bin, dir, 0)
	slave := ktproc.Start(t, ktproc.Options{Bin: bin, Dir: t.TempDir(), Args: []string{"-sid", "2", "-ulog", "ulog", "-rts", "x.rts",
		"-mhost", "127.0.0.1", "-mport", strconv.Itoa(master.Port)}})
	put(t, master.Addr(), "", 2000)
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	writers.Go(func() {
		c := client.New(master.Addr(), client.Options{})
		defer c.Close()
		for i := 0; ctx.Err() == nil; i++ {
			_ = c.DB("").Set(ctx, fmt.Sprintf("fresh%07d", i), []byte("value"), client.Never) // until it is told to end
		}
	})
	require.Regexp(t, `^0\tequal\t`, command(t, "", "compare", master.Addr(), slave.Addr()).stdout)
	lost := put(t, slave.Addr(), "", 0)
	require.NoError(t, lost.Remove(t.Context(), "key0001000"))
	r := command(t, "", "compare", "-keys", master.Addr(), slave.Addr())
	require.Equal(t, 2, r.exit, r.stderr+r.stdout)
	require.Regexp(t, `^0\tdiffers\t\d+\t\d+\t1\n<\tkey0001000\n$`, r.stdout)
	cancel()
	writers.Wait()
	require.Regexp(t, `^0\tdiffers\t(\d+)\t\d+\t1\n$`, command(t, "", "compare", master.Addr(), slave.Addr()).stdout)

	master.Stop(t)
	r = command(t, "", "checksum", "-port", strconv.Itoa(slave.Port), "-by", "key", "--", "key0000999", "key0001002")
	require.Regexp(t, `^2\t[0-9a-f]{16}\tkey0000999\tkey0001002\n$`, r.stdout)
	slave.Stop(t)
}

// TestCompareUndecided does not judge a slave that gets no updates.
func TestCompareUndecided(t *testing.T) {
	bin := serverBin(t)
	master := logged(t, bin, t.TempDir(), 0)
	slave := ktproc.Start(t, ktproc.Options{Bin: bin, Dir: t.TempDir(), Args: []string{"-sid", "2", "-rts", "x.rts",
		"-mhost", "127.0.0.1", "-mport", strconv.Itoa(freeport.Take(t))}}) // nobody is there
	put(t, master.Addr(), "", 10)
	r := command(t, "", "compare", "-wait", "0.1", master.Addr(), slave.Addr())
	require.Equal(t, 3, r.exit)
	require.Equal(t, "0\tundecided\t10\t0\t10\n", r.stdout)
	require.Contains(t, r.stderr, "has not received")
	master.Stop(t)
	slave.Stop(t)
}
