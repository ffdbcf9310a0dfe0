package remote_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"gotycoon/tools/remote"
)

// The binary protocol knows no names. What is meant for one database must not end up in another.
func TestImportOverBinaryNeedsANumber(t *testing.T) {
	clear(t)
	for _, db := range []string{"tree", "70000", "-1"} {
		r := command(t, "a\tb\n", at("import", "-bin", "-db", db)...)
		require.Equal(t, 1, r.exit)
		require.Contains(t, r.stderr, "the database must be a number")
		require.Empty(t, r.stdout)
	}
	require.Contains(t, succeed(t, "", "inform"), "count: 0\n")
}

// brokenInput is input that cannot be read to its end.
type brokenInput struct {
	io.Reader
	err error
}

func (b brokenInput) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = b.err
	}
	return n, err
}

// A line that is cut off would remove a record, or store a part of a value.
func TestImportOfInputThatBreaksOff(t *testing.T) {
	failure := errors.New("read failure")
	for _, tail := range []string{"lib", "lib\tpar"} {
		clear(t)
		succeed(t, "", "set", "-db", "tree", "lib", "keep")
		var stdout, stderr bytes.Buffer
		in := brokenInput{strings.NewReader("a\t1\n" + tail), failure}
		require.Equal(t, 1, remote.Main(t.Context(), at("import", "-db", "tree"), in, &stdout, &stderr))
		require.Contains(t, stderr.String(), "read standard input: read failure")
		require.Equal(t, ". (1)\n", stdout.String())
		require.Equal(t, map[string]string{"a": "1", "lib": "keep"}, listed(t))
	}
}

func TestImportOfATruncatedCompressedFile(t *testing.T) {
	clear(t)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write(lines(50_000))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	path := filepath.Join(t.TempDir(), "in.tsv.gz")
	require.NoError(t, os.WriteFile(path, packed.Bytes()[:packed.Len()/2], 0o600))
	r := command(t, "", at("import", "-db", "tree", path)...)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.stderr, "unexpected EOF")
	have := listed(t)
	require.Len(t, have, strings.Count(r.stdout, "."))
	for key, value := range have {
		require.Contains(t, "value of "+strings.TrimLeft(key[:5], "0")+key[5:], value)
	}
}

func TestReplicationIntervals(t *testing.T) {
	for iv, want := range map[string]string{"0": "iv\t0\n", "0.5": "iv\t0.5\n", "-1": "", "1e18": "iv\t4611686018427.388\n"} {
		fake, request := answerOne(t)
		r := command(t, "", "tunerepl", "-port", fake, "-iv", iv, "master")
		require.Zero(t, r.exit, r.stderr)
		_, body, _ := strings.Cut(<-request, "\r\n\r\n")
		require.Equal(t, "host\tmaster\n"+want+"port\t1978\n", body)
	}
}

func TestRolesOfAServer(t *testing.T) {
	for _, row := range []struct {
		options []string
		want    string
	}{{[]string{"-primary"}, "primary\ttrue\n"}, {[]string{"-primary", "-force"}, "primary\tforce\n"}, {[]string{"-ro"}, "readonly\ttrue\n"}, {[]string{"-rw"}, "readonly\tfalse\n"}} {
		fake, request := answerOne(t)
		r := command(t, "", append([]string{"tunerepl", "-port", fake}, row.options...)...)
		require.Zero(t, r.exit, r.stderr)
		_, body, _ := strings.Cut(<-request, "\r\n\r\n")
		require.Equal(t, row.want, body)
	}
	for _, options := range [][]string{{"-force"}, {"-ro", "-rw"}} {
		r := command(t, "", append([]string{"tunerepl"}, options...)...)
		require.Equal(t, 1, r.exit)
		require.Contains(t, r.stderr, options[0])
	}
}

// answerOne listens on a port, answers one request with nothing, and passes the request on.
func answerOne(t *testing.T) (port string, request <-chan string) {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	got := make(chan string, 1)
	go func() {
		nc, err := ln.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer nc.Close()
		buf := make([]byte, 4096)
		n, err := nc.Read(buf)
		if _, writeErr := nc.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")); err != nil || writeErr != nil {
			t.Error(err, writeErr)
		}
		got <- string(buf[:n])
	}()
	_, port, err = net.SplitHostPort(ln.Addr().String())
	require.NoError(t, err)
	return port, got
}

func TestServerIDsOfSlave(t *testing.T) {
	for _, sid := range []string{"-1", "65536"} {
		r := command(t, "", at("slave", "-sid", sid)...)
		require.Equal(t, 1, r.exit)
		require.Contains(t, r.stderr, "-sid: must be 0 to 65535")
	}
}
