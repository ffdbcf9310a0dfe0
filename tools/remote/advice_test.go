package remote_test

import (
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const saysNothing = "-"

// answering is a server that reads something, answers, and closes the connection; saysNothing keeps
// it open.
func answering(t *testing.T, answer string) (port string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = c.Read(make([]byte, 1<<16))
				if answer == saysNothing {
					_, _ = io.Copy(io.Discard, c)
				}
				_, _ = io.WriteString(c, answer)
			}()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// TestAdvice calls what is no server of databases, or one in the wrong way, with commands of all
// kinds of conversations. The error must say what to look at.
func TestAdvice(t *testing.T) {
	t.Parallel()
	const (
		absent   = "is the server running, and is this its address?"
		closed   = "the server has closed the connection: has it ended, is this the port of something else, or does only one side speak TLS? (-tls)"
		other    = "something else answers: is this the port of the server's databases"
		silent   = "there was no reply within the time of -tout"
		wantsTLS = "-tls makes this command speak TLS, and -tls-ca FILE names an authority"
		denied   = "-user and -password-file, or -token-file, name the credentials"
		noShown  = "the binary protocol shows no credentials: the server's access file can let in this machine"
	)
	good := startLogged(t, 1, "%")
	_, goodPort, _ := net.SplitHostPort(good)
	ports := map[string]string{
		"closing": answering(t, ""), "console": answering(t, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
		"web": answering(t, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n"), "ssh": answering(t, "SSH-2.0-x\r\n"),
		"silent": answering(t, saysNothing), "absent": "1", "tls": startSecured(t).data, "guarded": guardedServer(t, "0123456789abcdef"), "good": goodPort,
	}
	for _, row := range []struct {
		port, want string
		args       []string
	}{
		{"absent", absent + " (-host, -port)", []string{"get", "k"}},
		{"closing", closed, []string{"get", "k"}},
		{"console", other, []string{"get", "k"}},
		{"web", other, []string{"report"}},
		{"ssh", other, []string{"get", "k"}},
		{"silent", silent, []string{"get", "-tout", "0.05", "k"}},
		{"tls", wantsTLS, []string{"get", "k"}},
		{"good", closed, []string{"get", "-tls", "k"}},
		{"ssh", "the server does not speak TLS on this port", []string{"get", "-tls", "k"}},
		{"guarded", denied, []string{"get", "k"}},

		{"silent", silent, []string{"getbulk", "-bin", "-tout", "0.05", "k"}},
		{"closing", closed, []string{"backup", "x.ktss"}},
		{"console", other, []string{"slave"}},
		{"tls", wantsTLS, []string{"slave", "-uw"}},
		{"guarded", noShown, []string{"backup", filepath.Join(t.TempDir(), "x.ktss")}},
		{"console", other, []string{"import", "-bin"}},

		{"absent", absent, []string{"bench"}},
		{"closing", closed, []string{"bench"}},
		{"closing", closed, []string{"bench", "-protocol", "memcached"}},
		{"silent", silent, []string{"bench", "-tout", "0.05", "-protocol", "memcached"}},
		{"good", absent, []string{"bench", "-against", "127.0.0.1:1"}},
		{"guarded", denied, []string{"bench"}},

		{"good", absent, []string{"compare", "127.0.0.1:1"}},
		{"good", absent, []string{"migrate", "127.0.0.1:1", good}},
		{"good", wantsTLS, []string{"migrate", good, "127.0.0.1:TLS"}},
		{"good", closed, []string{"migrate", "tls://" + good, "127.0.0.1:TLS"}},
		{"good", denied, []string{"migrate", good, "127.0.0.1:GUARDED"}},

		{"good", absent, []string{"import", "-from", "memcached", "127.0.0.1:1"}},
		{"good", closed, []string{"import", "-from", "memcached", "127.0.0.1:CLOSING"}},
		{"good", "is this the port of a memcached?", []string{"import", "-from", "memcached", "127.0.0.1:CONSOLE"}},
		{"good", silent, []string{"import", "-from", "memcached", "-tout", "0.05", "127.0.0.1:SILENT"}},

		{"absent", absent, []string{"seq"}},
		{"absent", absent, []string{"lock", "-list"}},
		{"absent", absent, []string{"counter", "stats"}},
		{"tls", wantsTLS, []string{"quota", "query"}},
	} {
		args := []string{row.args[0], "-host", "127.0.0.1", "-port", ports[row.port]}
		for _, arg := range row.args[1:] {
			for name, short := range map[string]string{"TLS": "tls", "GUARDED": "guarded", "CLOSING": "closing", "CONSOLE": "console", "SILENT": "silent"} {
				if arg == "127.0.0.1:"+name {
					arg = "127.0.0.1:" + ports[short]
				}
			}
			args = append(args, arg)
		}
		r := command(t, "", args...)
		require.Equal(t, 1, r.exit, "%s %v", row.port, row.args)
		require.Contains(t, r.stderr, row.want, "%s %v", row.port, row.args)
	}
}
