package server_test

import (
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"gotycoon/client/wire/frame"
	"gotycoon/internal/freeport"
	"gotycoon/server"
)

// openPorts gives every protocol a port.
func openPorts(t *testing.T, cfg *server.Config) (ports map[string]int) {
	t.Helper()
	ports = map[string]int{}
	for _, row := range []struct {
		name string
		port *int
	}{
		{"memcache", &cfg.Plugins.MemcachePort}, {"counter", &cfg.Services.CounterPort}, {"lock", &cfg.Services.LockPort},
		{"sequence", &cfg.Services.SequencePort}, {"quota", &cfg.Services.QuotaPort},
	} {
		*row.port = freeport.Take(t)
		ports[row.name] = *row.port
	}
	cfg.Services.Database = filepath.Join(t.TempDir(), "services.kct")
	return ports
}

// asks are requests of every protocol, for records or figures that a stranger must not get.
var asks = map[string][]string{
	"data": {
		"GET /rpc/report HTTP/1.1\r\n\r\n",
		"GET /secret HTTP/1.1\r\n\r\n",
		"PUT /x HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
		"GET /rpc/clear HTTP/1.1\r\n\r\n",
		string(frame.AppendHeader(nil, frame.Header{Magic: frame.GetBulk})),
		string(frame.AppendFollow(nil, frame.Follow{})),
		string(frame.AppendCopyRequest(nil, frame.CopyRequest{})),
		"\xb8\x00\x00\x00\x00\x00\x00\x00\x00",
		"\xb4\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00f",
	},
	"memcache": {"get secret\r\n", "set x 0 0 1\r\nx\r\n", "stats\r\n", "\x80\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00secret"},
	"counter":  {"\x90\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01", "\x90\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"},
	"lock":     {"lock a\n", "status-by-key\n"},
	"sequence": {"GET /fetch HTTP/1.1\r\n\r\n"},
	"quota":    {"GET /query HTTP/1.1\r\n\r\n", "GET /apply?amt=1 HTTP/1.1\r\n\r\n"},
}

// isRefused reports whether there is no answer, or a refusal in the protocol's form.
func isRefused(answer string) bool {
	for _, start := range []string{"HTTP/1.1 401", "HTTP/1.1 403", "\xbf", "CLIENT_ERROR unauthenticated\r\n", "CLIENT_ERROR authentication failure\r\n",
		"SERVER_ERROR access denied: ", "ACCESS_DENIED", "\x91\x10\x20", "\x91\x00\x20"} {
		if strings.HasPrefix(answer, start) {
			return true
		}
	}
	return len(answer) > 8 && answer[:2] == "\x81\x00" && answer[6:8] == "\x00\x20" // memcached, binary
}

// exchange sends a request, ends sending, and returns everything that comes back.
func exchange(t *testing.T, dial func(port int) net.Conn, port int, request string) string {
	t.Helper()
	c := dial(port)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	_, err := io.WriteString(c, request)
	require.NoError(t, err)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	answer, err := io.ReadAll(c)
	require.NoError(t, err, "%q", request)
	return string(answer)
}

func dialHere(t *testing.T) func(port int) net.Conn {
	return func(port int) net.Conn {
		c, err := net.DialTCP("tcp4", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		require.NoError(t, err)
		return c
	}
}

// accessFile writes an access file in which each user's password is the name.
func accessFile(t *testing.T, path, users string, rules ...string) {
	t.Helper()
	for name := range strings.FieldsSeq(users) {
		hash, err := bcrypt.GenerateFromPassword([]byte(name), bcrypt.MinCost)
		require.NoError(t, err)
		rules = append(rules, name+":"+string(hash))
	}
	require.NoError(t, os.WriteFile(path+".new", []byte(strings.Join(rules, "\n")), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

// as makes a request of a user whose password is the name.
func as(name, request string) string {
	header := "\r\nAuthorization: Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+name)) + "\r\n"
	return strings.Replace(request, "\r\n", header, 1)
}

func TestWithAnAccessFileNobodyElseGetsAnything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access")
	accessFile(t, path, "anna", "allow anna read,write")
	var ports map[string]int
	s := start(t, func(c *server.Config) { c.Access.Path = path; ports = openPorts(t, c) })
	ports["data"] = s.port()
	for name, requests := range asks {
		for _, request := range requests {
			answer := exchange(t, dialHere(t), ports[name], request)
			require.True(t, isRefused(answer), "%s: %q: %q", name, request, answer)
		}
	}
	require.Contains(t, exchange(t, dialHere(t), ports["data"], as("anna", asks["data"][0])), "HTTP/1.1 200 OK")
	require.Contains(t, exchange(t, dialHere(t), ports["sequence"], as("anna", asks["sequence"][0])), "200 OK")
	require.Contains(t, exchange(t, dialHere(t), ports["memcache"], "set x 0 0 9\r\nanna anna\r\nget x\r\n"), "STORED\r\nEND\r\n")
	require.Zero(t, s.stop())
	require.NotContains(t, strings.Join(s.log.lines(), "\n"), "protected")
}

// The server looks at the access file: a changed password, and a right that is taken away, hold on
// open connections without a restart.
func TestAChangedAccessFileTakesEffectByItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access")
	accessFile(t, path, "anna", "allow anna read", "allow anyone replicate from=127.0.0.0/8")
	s := start(t, func(c *server.Config) { c.Access.Path, c.UpdateLog, c.ServerID = path, t.TempDir(), 1 })
	c, follower := s.dial(), s.dial()
	report := as("anna", "GET /rpc/report HTTP/1.1\r\n\r\n")
	c.send(report)
	status, _ := c.reply()
	require.Equal(t, 200, status)
	follower.send(string(frame.AppendFollow(nil, frame.Follow{})))
	first, err := follower.in.ReadByte()
	require.NoError(t, err)
	require.Equal(t, byte(frame.Replication), first)

	accessFile(t, path, "anna berta", "allow berta read") // anna has no rights any more
	eventually(t, func() bool { c.send(report); status, _ = c.reply(); return status == http.StatusForbidden })
	_, err = io.Copy(io.Discard, follower)
	require.NoError(t, err, "the follower is cut off")

	accessFile(t, path, "berta", "allow berta read")
	eventually(t, func() bool {
		c := s.dial()
		c.send(report)
		status, _ = c.reply()
		return status == http.StatusUnauthorized
	})
	require.Zero(t, s.stop())
}

func TestABrokenAccessFileStopsTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access")
	require.NoError(t, os.WriteFile(path, []byte("\nallow me everything\n"), 0o600))
	cfg := server.DefaultConfig()
	cfg.Access.Path = path
	var log buffer
	require.Equal(t, 1, server.Run(t.Context(), cfg, &log, io.Discard))
	require.Contains(t, log.lines()[1], "[ERROR]: "+path+`: line 2: "everything" is no right`)
	cfg.Daemon, cfg.Access.Path = true, "access"
	require.Equal(t, 1, server.Run(t.Context(), cfg, &log, io.Discard))
}

// Credentials of an HTTP request give no rights to binary requests on the same connection.
func TestCredentialsOfHTTPAreNotThoseOfTheBinaryProtocol(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access")
	accessFile(t, path, "anna", "allow anna admin", "allow anyone read db=5")
	s := start(t, func(c *server.Config) { c.Access.Path = path })
	get := frame.AppendKey(frame.AppendHeader(nil, frame.Header{Magic: frame.GetBulk, RNum: 1}), frame.Key{Key: []byte("nothing")})
	for _, request := range []string{string(get), asks["data"][5], asks["data"][6], asks["data"][8]} {
		answer := exchange(t, dialHere(t), s.port(), as("anna", "GET /nothing HTTP/1.1\r\n\r\n")+request)
		_, answer, _ = strings.Cut(answer, "\r\n\r\n")
		require.True(t, isRefused(answer), "%q: %q", request, answer)
	}
}
