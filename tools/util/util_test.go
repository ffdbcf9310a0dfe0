package util_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/internal/version"
	"gotycoon/tools/util"
	"gotycoon/ulog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(withPostgres{m}) }

// result is how a command ended.
type result struct {
	exit           int
	stdout, stderr string
}

// command runs ktutilmgr.
func command(stdin string, args ...string) result {
	var stdout, stderr bytes.Buffer
	exit := util.Main(context.Background(), args, strings.NewReader(stdin), &stdout, &stderr)
	return result{exit, stdout.String(), stderr.String()}
}

// succeed returns what a command printed that must succeed.
func succeed(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	r := command(stdin, args...)
	require.Zero(t, r.exit, "%v: %s", args, r.stderr)
	require.Empty(t, r.stderr, "%v", args)
	return r.stdout
}

func TestUsage(t *testing.T) {
	require.Contains(t, succeed(t, "", "version"), "Kyoto Tycoon 0.9.56b")
	require.Contains(t, succeed(t, "", "enc", "-h"), "-quote")
	for _, args := range [][]string{
		{}, {"nonsense"}, {"date", "more"}, {"ulog"}, {"http"}, {"rpc"}, {"rpc", "echo", "odd"}, {"rpc", "-ienc", "X", "echo"}, {"http", "-ah", "x"},
		{"enc", "-hex", "-url"}, {"ulog", "-ts", "x", "dir"},
	} {
		r := command("", args...)
		require.Equal(t, 1, r.exit)
		require.Contains(t, r.stderr, "\nusage:\n")
	}
	require.Equal(t, "0.9.56b\n", succeed(t, "", "conf", "-v"))
	require.Contains(t, succeed(t, "", "conf"), "Kyoto Tycoon")
	require.Contains(t, succeed(t, "", "conf"), "\nversion: "+version.Current().Version+"\n")
	require.DirExists(t, strings.TrimSpace(succeed(t, "", "conf", "-p")))
	require.Contains(t, command("", "conf", "-l").stderr, "no C library")
}

func TestDate(t *testing.T) {
	for want, args := range map[string][]string{
		"815574896":                       {"-ds", "1995-11-05T12:34:56Z"},
		"1970-01-01T09:01:40+09:00":       {"-ds", "100", "-wf", "-jl", "32400"},
		"Thu, 01 Jan 1970 09:01:40 +0900": {"-ds", "100", "-rf", "-jl", "32400"},
		"Thu, 01 Jan 1970 00:01:40 GMT":   {"-ds", "100", "-rf", "-jl", "0"},
		"-9223372036854775808":            {"-ds", "nonsense"},
	} {
		require.Equal(t, want+"\n", succeed(t, "", append([]string{"date"}, args...)...))
	}
	require.Equal(t, 1, command("", "date", "-ds", "nonsense", "-wf").exit)
	now, err := time.Parse("2006-01-02T15:04:05Z07:00\n", succeed(t, "", "date", "-wf"))
	require.NoError(t, err)
	require.Less(t, time.Since(now).Abs(), time.Minute)
}

func TestEncode(t *testing.T) {
	in := "a b=\xff/\x00\n"
	for option, want := range map[string]string{
		"-b64": "YSBiPf8vAAo=\n", "-url": "a%20b%3d%ff%2f%00%0a\n", "-quote": "a b=3D=FF/=00=0A\n", "-hex": "6120623dff2f000a\n",
	} {
		require.Equal(t, want, succeed(t, in, "enc", option))
		require.Equal(t, in, succeed(t, want, "enc", option, "-d"), option)
	}
	for _, option := range []string{"-deflate", "-zlib", "-gzip", "-zstd"} {
		packed := succeed(t, in, "enc", option)
		require.Equal(t, in, succeed(t, packed, "enc", "-d", option))
		require.Equal(t, 1, command(packed[:len(packed)/2], "enc", "-d", option).exit, option)
	}
	file := filepath.Join(t.TempDir(), "in")
	require.NoError(t, os.WriteFile(file, []byte(in), 0o600))
	require.Equal(t, succeed(t, in, "enc"), succeed(t, "", "enc", "-b64", file))
	require.Equal(t, "6120623dff2f000a\n", succeed(t, "", "hex", file))
	require.Equal(t, in, succeed(t, "61 20 62 3D FF 2F 00 0A", "hex", "-d"))
	require.Equal(t, "ktutilmgr: nofile: open error\nktutilmgr: open nofile: no such file or directory\n", command("", "hex", "nofile").stderr)
}

func TestHTTP(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusFound)
		_, _ = io.WriteString(w, r.Method+" "+r.URL.String()+" "+r.Header.Get("X-A")+" "+string(body))
	}))
	defer s.Close()
	require.Equal(t, "GET /p?q=1&k=v%20v ", strings.TrimRight(succeed(t, "", "http", "-qs", "k", "v v", s.URL+"/p?q=1"), " ")+" ")
	require.Equal(t, "POST / header body", succeed(t, "body", "http", "-post", "-ah", "X-A", "header", s.URL+"/"))
	require.Equal(t, "PUT /  literal", succeed(t, "ignored", "http", "-put", "-body", "@literal", s.URL+"/"))
	file := filepath.Join(t.TempDir(), "body")
	require.NoError(t, os.WriteFile(file, []byte("of a file"), 0o600))
	require.Equal(t, "DELETE /  of a file", succeed(t, "", "http", "-delete", "-body", file, s.URL+"/"))
	require.Regexp(t, regexp.MustCompile("^HTTP/1.1 302 Found\nConnection: close\nContent-Length: [0-9]+\n(.*\n)+\nGET"), succeed(t, "", "http", "-ph", s.URL))
	require.Contains(t, command("", "http", "-ec", "200", s.URL).stderr, "error: 302: HTTP/1.1 302 Found")
	require.Contains(t, command("", "http", "-put", "-body", "nofile", s.URL).stderr, "nofile: open error")
	for _, url := range []string{"nonsense", "http://", "ftp://x/", "http://%zz/"} {
		require.Equal(t, "ktutilmgr: "+url+": error: -1: [invalid URL expression]\n", command("", "http", url).stderr)
	}
}

// TestUlog lists and prints a log, one with damage too.
func TestUlog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	log, err := ulog.Open(dir, ulog.Options{})
	require.NoError(t, err)
	var first ulog.Stamp
	for i, key := range []string{"a", "b"} {
		at, err := log.Append([]ulog.Update{{SID: 7, DBID: 1, Op: ulog.OpSet, Key: []byte(key), Value: []byte("v")}})
		require.NoError(t, err)
		if i == 0 {
			first = at
		}
	}
	require.NoError(t, log.Close())
	all := succeed(t, "", "ulog", dir+"//")
	require.Regexp(t, "^[0-9]+\t00 07 00 01 A1 01 01 61 76\n[0-9]+\t00 07 00 01 A1 01 01 62 76\n$", all)
	_, second, _ := strings.Cut(all, "\n")
	require.Equal(t, second, succeed(t, "", "ulog", "-ts", formatStamp(first), dir))
	require.Empty(t, succeed(t, "", "ulog", "-ts", formatStamp(first+1<<50), dir))
	require.Regexp(t, "^"+dir+"/0000000001.ulog\t[0-9]+\t[0-9]+\n$", succeed(t, "", "ulog", "-uf", dir))
	require.Empty(t, succeed(t, "", "ulog", "-uf", "-ts", formatStamp(first+1<<50), dir))

	segment := filepath.Join(dir, "0000000001.ulog")
	content, err := os.ReadFile(segment)
	require.NoError(t, err)
	content[40] ^= 0xff
	require.NoError(t, os.WriteFile(segment, content, 0o600))
	r := command("", "ulog", dir)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "0000000001.ulog")
	require.Equal(t, 1, command("", "ulog", segment).exit)
}

func formatStamp(at ulog.Stamp) string { return strconv.FormatUint(uint64(at), 10) }
