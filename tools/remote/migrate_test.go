package remote_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/internal/klog"
	"gotycoon/server"
)

// startLogged starts a server in this process that keeps a log and can be made read-only.
func startLogged(t *testing.T, sid int, databases ...string) (addr string) {
	t.Helper()
	dir := t.TempDir()
	cfg := server.DefaultConfig()
	cfg.Port, cfg.LogLevel, cfg.Databases = 0, klog.LevelSilent, databases
	cfg.UpdateLog, cfg.ServerID, cfg.RTSPath = filepath.Join(dir, "ulog"), sid, filepath.Join(dir, "rts")
	listening, ended := make(chan net.Addr, 1), make(chan int, 1)
	cfg.Listening = func(a net.Addr) { listening <- a }
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- server.Run(ctx, cfg, io.Discard, io.Discard) }()
	t.Cleanup(func() { cancel(); <-ended })
	_, port, err := net.SplitHostPort((<-listening).String())
	require.NoError(t, err)
	return "127.0.0.1:" + port
}

// listing returns what a database has, as list -json prints it.
func listing(t *testing.T, addr, db string) string {
	t.Helper()
	host, port, _ := net.SplitHostPort(addr)
	r := command(t, "", "list", "-host", host, "-port", port, "-db", db, "-json", "-pv", "-pt")
	require.Zero(t, r.exit, r.stderr)
	return r.stdout
}

// TestMigrateFromTheOriginal moves what the original has said, byte for byte.
func TestMigrateFromTheOriginal(t *testing.T) {
	clear(t)
	pos := filepath.Join(t.TempDir(), "x.migrate")
	from, to := startOriginal(t), "127.0.0.1:"+port
	r := command(t, "", "migrate", "-switch", "-quiet", "1", "-pos", pos, from, to, "one.kct=tree", "1=0")
	require.Zero(t, r.exit, r.stderr)
	require.Contains(t, r.stdout, "copied 33 records of database 0 (one.kct)\ncopied 32 records of database 1 (two.kch)\n")
	require.Contains(t, r.stdout, "caught up: "+to+" has what "+from+" had up to ts=")
	require.Contains(t, r.stdout, "stop now whoever writes to "+from+"; the switch goes on when it has had no update for 1s\n")
	require.Contains(t, r.stdout, "has no checksums: its records are read\n0\tequal\t32\t32\t0\n1\tequal\t32\t32\t0\nswitch now: "+to)
	require.Contains(t, r.stdout, "keeps no update log")
	require.NoFileExists(t, pos)

	tree := listing(t, to, "tree")
	require.Equal(t, 32, strings.Count(tree, "\n"))
	require.Contains(t, tree, `{"key":"key001","value":"changed behind the cursor"}`)
	require.NotContains(t, tree, "key002")
	require.NotContains(t, tree, "short")
	require.Contains(t, tree, `{"key":"later","value":"expires in 2100","xt":4102444800}`)
	require.Contains(t, tree, `{"key_base64":"AP8=","value_base64":"AIA="}`)
	hash := listing(t, to, "0")
	require.Equal(t, 32, strings.Count(hash, "\n"))
	require.Contains(t, hash, `{"key":"new","value":"with time","xt":4102444801}`)
	require.NotContains(t, hash, "key030")
}

// TestCompareWithTheOriginal reads the records of a server that has no checksums.
func TestCompareWithTheOriginal(t *testing.T) {
	clear(t)
	to := "127.0.0.1:" + port
	r := command(t, "", "migrate", "-once", "-pos", filepath.Join(t.TempDir(), "x"), startOriginal(t), to, "0=tree")
	require.Equal(t, 2, r.exit, "the second cursor of the recording sees the updates that were made meanwhile")
	require.Contains(t, r.stdout, "0\tdiffers\t32\t32\t3\n<\tcounter\n!\tkey001\n>\tkey002\n")
	require.Contains(t, r.stdout, "do not switch")
	r = command(t, "", "compare", "-keys", "-db", "0", "-db2", "tree", startOriginal(t), "tcp://"+to)
	require.Equal(t, result{stdout: "0\tequal\t32\t32\t0\n", stderr: r.stderr}, r)
	require.Contains(t, r.stderr, "has no checksums: its records are read")
	r = command(t, "", "compare", "-by", "key", "-db", "0", startOriginal(t), to)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "not implemented")
}

// withoutChecksums stands before a server, and lets it seem to know no checksums. It has one
// connection to the server, because cursors belong to connections.
func withoutChecksums(t *testing.T, addr string) string {
	t.Helper()
	behind := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
	transport := &http.Transport{MaxConnsPerHost: 1}
	behind.Transport = transport
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/checksum") {
			w.WriteHeader(http.StatusNotImplemented)
			return
		}
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.Close(); transport.CloseIdleConnections() })
	return s.Listener.Addr().String()
}

// A sample is chosen on both sides, so it finds what only one of them has.
func TestCompareSample(t *testing.T) {
	t.Parallel()
	a, b := startLogged(t, 1, "%"), startLogged(t, 2, ":")
	for _, addr := range []string{a, b} {
		put(t, addr, "0", 300)
	}
	for _, pair := range [][]string{{a, b}, {withoutChecksums(t, a), b}, {a, withoutChecksums(t, b)}, {withoutChecksums(t, b), withoutChecksums(t, a)}} {
		r := command(t, "", append([]string{"compare", "-sample", "40"}, pair...)...)
		require.Zero(t, r.exit, r.stderr)
		var looked int
		_, err := fmt.Sscanf(r.stdout, "0\tequal\t%d\t", &looked)
		require.NoError(t, err)
		require.Greater(t, looked, 5)
		require.Less(t, looked, 200)
	}
	require.NoError(t, put(t, a, "0", 0).Set(t.Context(), "only in the first", nil, client.Never))
	require.NoError(t, put(t, b, "0", 0).Set(t.Context(), "only in the second", nil, client.Never))
	require.NoError(t, put(t, b, "0", 0).Set(t.Context(), "key0000100", []byte("value"), client.At(time.Unix(4_000_000_000, 0))))
	const want = "0\tdiffers\t302\t302\t3\n!\tkey0000100\n<\tonly in the first\n>\tonly in the second\n"
	for _, first := range []string{a, withoutChecksums(t, a)} {
		r := command(t, "", "compare", "-sample", "5000", "-keys", first, b)
		require.Equal(t, 2, r.exit, r.stderr)
		require.Equal(t, want, r.stdout)
	}
}

// TestMigrateUnderLoad moves two databases while clients write, until the source refuses their
// updates. What the source has acknowledged must be there. Then it goes the other way.
func TestMigrateUnderLoad(t *testing.T) {
	t.Parallel()
	a, b := startLogged(t, 1, "%", ":"), startLogged(t, 2, ":", "%#ktopts=p", "%")
	c := client.New(a, client.Options{})
	defer c.Close()
	put(t, a, "0", 4000)
	put(t, a, "1", 3000)

	last := make([]string, 4) // acknowledged values, by writer
	var writers sync.WaitGroup
	for w := range last {
		writers.Go(func() {
			for i := 0; ; i++ {
				value := fmt.Sprint(i)
				if err := c.DB("0").Set(t.Context(), fmt.Sprint("writer", w), []byte(value), client.At(time.Unix(4_000_000_000, 0))); err != nil {
					return // read-only
				}
				last[w] = value
				_ = c.DB("0").Remove(t.Context(), fmt.Sprintf("key%07d", i*len(last)+w)) // where there is one
			}
		})
	}
	pos := filepath.Join(t.TempDir(), "x.migrate")
	r := command(t, "", "migrate", "-switch", "-pos", pos, a, b, "0=2", "1=0")
	writers.Wait()
	require.Zero(t, r.exit, r.stderr+r.stdout)
	require.Contains(t, r.stdout, a+" refuses updates from now on\n")
	require.NotContains(t, r.stdout, "takes updates again")
	require.Equal(t, listing(t, a, "0"), listing(t, b, "2"))
	require.Equal(t, 3000, strings.Count(listing(t, b, "0"), "\n"))
	require.Empty(t, listing(t, b, "1"))
	target := client.New(b, client.Options{})
	defer target.Close()
	for w, value := range last {
		have, err := target.DB("2").GetRecord(t.Context(), fmt.Sprint("writer", w))
		require.NoError(t, err)
		require.Equal(t, value, string(have.Value), "the last value that writer %d was told to be stored", w)
		require.EqualValues(t, 4_000_000_000, have.Expires.Unix())
	}

	require.NoError(t, c.SetReadOnly(t.Context(), false))
	require.NoError(t, target.DB("2").Clear(t.Context()))
	require.NoError(t, target.DB("2").Set(t.Context(), "after", []byte("the switch"), client.Never))
	_, back, found := strings.Cut(r.stdout, ": ktremotemgr ")
	require.True(t, found, r.stdout)
	stdout, stderr, stop := background(t, strings.Fields(strings.Replace(back, "migrate ", "migrate -pos "+pos+" ", 1))...)
	require.Eventually(t, func() bool { return listing(t, a, "0") == `{"key":"after","value":"the switch"}`+"\n" }, waitLimit, 10*time.Millisecond)
	require.Equal(t, 130, stop(), stderr.String())
	require.NotContains(t, stdout.String(), "copied")
}

// TestMigrateGoesOn ends a run within the copy of a database, and then while it follows the log.
func TestMigrateGoesOn(t *testing.T) {
	const n = 20_000 // ten seconds with the limit: the first run is not at the end when it is stopped
	a := startLogged(t, 1, "%")
	put(t, a, "0", n)
	clear(t)
	to := "127.0.0.1:" + port
	pos := filepath.Join(t.TempDir(), "x.migrate")
	has := func(text string) func() bool {
		return func() bool { b, _ := os.ReadFile(pos); return strings.Contains(string(b), text) }
	}
	args := []string{"migrate", "-pos", pos, a, to, "0=tree"}
	stdout, stderr, stop := background(t, append([]string{"migrate", "-limit", "30k"}, args[1:]...)...)
	require.Eventually(t, has(`"after"`), waitLimit, time.Millisecond)
	require.Equal(t, 130, stop(), stderr.String())
	require.Contains(t, stdout.String(), "ended before the switch: clients stay with "+a+"; the same command goes on from "+pos+", and with -switch")
	copied := strings.Count(listing(t, to, "tree"), "\n")
	require.Positive(t, copied)
	require.Less(t, copied, n)

	// An update behind the place where the copy goes on can only come with the log.
	first := put(t, a, "0", 0)
	require.NoError(t, first.Remove(t.Context(), "key0000001"))
	stdout, stderr, stop = background(t, args...)
	require.Eventually(t, func() bool { return strings.Contains(stdout.String(), "caught up") }, waitLimit, time.Millisecond, stderr.String())
	require.Contains(t, stdout.String(), "going on from ")
	_, text, _ := strings.Cut(stdout.String(), "copied ")
	var again int
	_, err := fmt.Sscanf(text, "%d records", &again)
	require.NoError(t, err, stdout.String())
	require.Less(t, again, n)
	require.Contains(t, []int{n - copied, n - copied + 2000, n - copied + 4000}, again, "a batch of 2000 is behind the saved place, or two")
	require.NoError(t, first.Set(t.Context(), "late", []byte("update"), client.Never))
	require.Eventually(t, func() bool { return strings.Contains(listing(t, to, "tree"), "late") }, waitLimit, time.Millisecond)
	require.Equal(t, 130, stop(), stderr.String())
	require.Equal(t, listing(t, a, "0"), listing(t, to, "tree"))

	for want, args := range map[string][]string{
		"belongs to the migration from " + a:       {"-pos", pos, a, startLogged(t, 3, "%")},
		"belongs to a migration of other":          {"-pos", pos, a, to, "0=0"},
		"has 20000 records in the database for 0 ": {"-pos", pos + "2", a, to, "0=tree"},
		"keeps no update log":                      {"-pos", pos + "2", "-merge", to, a, "tree=0"},
		a + " are the same server":                 {a, a},
		"and localhost:":                           {"-clear", a, strings.Replace(a, "127.0.0.1", "localhost", 1)},
		`has no database "none"; it has [":" `:     {a, to, "0=none"},
		"a database is named twice":                {a, to, "0=0", "0=1"},
		"-clear and -merge are opposites":          {"-clear", "-merge", a, to},
		"-once goes neither with":                  {"-once", "-switch", a, to},
		"connect to localhost:1: ":                 {"localhost:1", to},
		"-ts: must be a time stamp":                {"-ts", "x", "-pos", pos + "2", a, to, "0=tree"},
		"keeps no update log, or does not let":     {"-ts", "now", "-pos", pos + "2", to, a, "tree=0"},
		"must be a size: a number of bytes":        {"-limit", "20x", a, to},
		"-quiet: must not be negative":             {"-quiet", "-1", a, to},
		"-lag: must not be negative":               {"-lag", "-1", a, to},
		"-token-file takes the place of":           {"-to-user", "anna", "-to-token-file", "x", a, to},
	} {
		r := command(t, "", append([]string{"migrate"}, args...)...)
		require.Equal(t, 1, r.exit, want)
		require.Contains(t, r.stderr, want)
	}
}

// A target that differs makes the source take updates again.
func TestMigrateThatDiffers(t *testing.T) {
	t.Parallel()
	a, to := startLogged(t, 1, "%"), startLogged(t, 2, "%")
	put(t, a, "0", 10)
	require.NoError(t, put(t, to, "0", 0).Set(t.Context(), "mine", []byte("stays"), client.Never))
	args := []string{"-switch", "-pos", filepath.Join(t.TempDir(), "x"), "-ts", "now", a, to}
	r := command(t, "", append([]string{"migrate"}, args...)...)
	require.Equal(t, 2, r.exit, r.stderr)
	require.Contains(t, r.stdout, "0\tdiffers\t10\t1\t11\n")
	require.Contains(t, r.stdout, "do not switch\n"+a+" takes updates again\n")
	require.NoError(t, put(t, a, "0", 10).Set(t.Context(), "a", nil, client.Never))
}

// TestMigrateWithCredentialsOfEach moves records to a server with an access file, and back. The
// options with -to- are for the target alone.
func TestMigrateWithCredentialsOfEach(t *testing.T) {
	const token = "0123456789abcdef"
	plain, guarded := startLogged(t, 1, "%"), "127.0.0.1:"+guardedServer(t, token, "allow anyone replicate from=local")
	put(t, plain, "0", 10)
	password := write(t, "password", "hunter2")
	pos := filepath.Join(t.TempDir(), "x")
	r := command(t, "", "migrate", "-once", "-pos", pos, "-to-user", "anna", "-to-password-file", password, plain, guarded)
	require.Zero(t, r.exit, r.stderr)
	r = command(t, "", "migrate", "-once", "-pos", pos, "-to-user", "anna", plain, guarded)
	require.Contains(t, r.stderr, "wrong password")
	back := guardedServer(t, token)
	r = command(t, "", "migrate", "-once", "-pos", pos, "-token-file", write(t, "token", token), "-to-user", "anna", "-to-password-file", password,
		guarded, "127.0.0.1:"+back)
	require.Zero(t, r.exit, r.stderr)
	require.Contains(t, r.stdout, "0\tequal\t10\t10\t0\n")
	r = command(t, "", "migrate", "-once", "-clear", "-pos", pos, "-user", "anna", "-password-file", password, "127.0.0.1:"+back, plain)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "the binary protocol shows no credentials")
}

// TestMigrateWithTLSOfEach moves records between servers whose certificates have nothing in common.
func TestMigrateWithTLSOfEach(t *testing.T) {
	one, other := startSecured(t), startSecured(t)
	args := []string{"migrate", "-once", "-pos", filepath.Join(t.TempDir(), "x")}
	for prefix, s := range map[string]*secured{"-": one, "-to-": other} {
		args = append(args, prefix+"tls-ca", s.ca.Path("ca.pem"), prefix+"tls-cert", s.ca.Path("user.pem"), prefix+"tls-key", s.ca.Path("user.key"), prefix+"tls-name", "db.example")
	}
	r := command(t, "", append(args, "127.0.0.1:"+one.data, "127.0.0.1:"+other.data)...)
	require.Zero(t, r.exit, r.stderr)
}
