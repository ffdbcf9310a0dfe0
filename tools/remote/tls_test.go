package remote_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/freeport"
	"gotycoon/internal/klog"
	"gotycoon/internal/tlsfiles/testca"
	"gotycoon/server"
)

// secured is a server that asks for certificates, and the ports of its services.
type secured struct {
	ca                                   *testca.CA
	data, counter, lock, sequence, quota string
}

func startSecured(t *testing.T) *secured {
	t.Helper()
	dir := t.TempDir()
	ca, err := testca.New(dir, "ca")
	require.NoError(t, err)
	for _, s := range []testca.Spec{{Name: "server", Hosts: []string{"db.example"}}, {Name: "user", Client: true}} {
		_, err := ca.Issue(s)
		require.NoError(t, err)
	}
	cfg := server.DefaultConfig()
	cfg.Port, cfg.LogLevel = 0, klog.LevelSilent
	cfg.UpdateLog, cfg.ServerID = filepath.Join(dir, "ulog"), 1
	cfg.TLS = server.TLSConfig{Cert: ca.Path("server.pem"), Key: ca.Path("server.key"), CA: ca.Path("ca.pem")}
	ports := []int{freeport.Take(t), freeport.Take(t), freeport.Take(t), freeport.Take(t)}
	cfg.Services = server.ServicesConfig{
		CounterPort: ports[0], LockPort: ports[1], SequencePort: ports[2], QuotaPort: ports[3], Database: filepath.Join(dir, "services.kct")}
	listening := make(chan net.Addr, 1)
	cfg.Listening = func(a net.Addr) { listening <- a }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() { ended <- server.Run(ctx, cfg, io.Discard, io.Discard) }()
	t.Cleanup(func() { cancel(); <-ended })
	_, data, err := net.SplitHostPort((<-listening).String())
	require.NoError(t, err)
	text := func(i int) string { return fmt.Sprint(ports[i]) }
	return &secured{ca, data, text(0), text(1), text(2), text(3)}
}

// TestEverySubCommandSpeaksTLS runs all sub-commands over TLS, configured by the environment and by
// options.
func TestEverySubCommandSpeaksTLS(t *testing.T) {
	s := startSecured(t)
	options := []string{"-host", "127.0.0.1", "-tls-ca", s.ca.Path("ca.pem"), "-tls-cert", s.ca.Path("user.pem"),
		"-tls-key", s.ca.Path("user.key"), "-tls-name", "db.example"}
	backup := filepath.Join(t.TempDir(), "backup.ktss")
	all := []struct {
		port string
		args []string
	}{
		{s.data, []string{"report"}}, {s.data, []string{"inform"}}, {s.data, []string{"set", "k", "v"}}, {s.data, []string{"get", "k"}},
		{s.data, []string{"list"}}, {s.data, []string{"sync"}}, {s.data, []string{"vacuum"}}, {s.data, []string{"import"}},
		{s.data, []string{"setbulk", "-bin", "a", "1"}}, {s.data, []string{"getbulk", "-bin", "a"}}, {s.data, []string{"removebulk", "a"}},
		{s.data, []string{"match", "k"}}, {s.data, []string{"regex", "k"}}, {s.data, []string{"slave"}}, {s.data, []string{"backup", backup}},
		{s.data, []string{"compare", "127.0.0.1:" + s.data}}, {s.data, []string{"remove", "k"}}, {s.data, []string{"clear"}},
		{s.counter, []string{"counter", "acquire", "c", "1", "1", "--", "true"}}, {s.lock, []string{"lock", "l", "--", "true"}},
		{s.lock, []string{"lock", "-list"}}, {s.sequence, []string{"seq"}}, {s.quota, []string{"quota", "query"}},
	}
	run := func(port string, args, options []string) result {
		line := append([]string{args[0], "-port", port}, options...)
		return command(t, "x\ty\n", append(line, args[1:]...)...)
	}
	for _, c := range all {
		r := run(c.port, c.args, options)
		require.Zero(t, r.exit, "%v: %s", c.args, r.stderr)
	}
	for _, c := range all {
		r := run(c.port, c.args, []string{"-host", "127.0.0.1", "-tout", "20"})
		require.NotZero(t, r.exit, "without TLS: %v", c.args)
	}
	require.FileExists(t, backup)
	for name, value := range map[string]string{"_CA": s.ca.Path("ca.pem"), "_CERT": s.ca.Path("user.pem"), "_KEY": s.ca.Path("user.key"), "_NAME": "db.example"} {
		t.Setenv("GOTYCOON_TLS"+name, value)
	}
	for _, c := range all {
		r := run(c.port, c.args, []string{"-host", "127.0.0.1"})
		if c.args[0] == "get" || c.args[0] == "remove" {
			continue // the record is gone
		}
		require.Zero(t, r.exit, "as the environment says: %v: %s", c.args, r.stderr)
	}
	plain := "tcp://127.0.0.1:" + port // a server without TLS beside one with it
	r := command(t, "", "compare", "-db", "0", "127.0.0.1:"+s.data, plain)
	require.NotEqual(t, 1, r.exit, r.stderr)
	r = command(t, "", "migrate", "-once", "-clear", "-pos", filepath.Join(t.TempDir(), "x"), plain, "tls://127.0.0.1:"+s.data, "0")
	require.Zero(t, r.exit, r.stderr)
	r = command(t, "", "compare", "-db", "0", "127.0.0.1:"+s.data, "127.0.0.1:"+port)
	require.Equal(t, 1, r.exit, "without tcp:// the environment holds")
	r = run(s.data, []string{"inform"}, []string{"-host", "127.0.0.1", "-tls=false"})
	require.NotZero(t, r.exit, "the option counts more")
}

func TestErrorsOfTLSSayWhy(t *testing.T) {
	s := startSecured(t)
	ca := []string{"inform", "-host", "127.0.0.1", "-port", s.data, "-tls-ca", s.ca.Path("ca.pem")}
	for want, args := range map[string][]string{
		"doesn't contain any IP SANs":    nil, // the certificate is for db.example
		"valid for db.example":           {"-tls-name", "other.example"},
		"certificate required":           {"-tls-name", "db.example"},
		"none: no such file":             {"-tls-ca", "none"},
		"belong together":                {"-tls-cert", s.ca.Path("user.pem")},
		"signed by unknown authority":    {"-tls-ca", s.ca.Path("user.pem"), "-tls-name", "db.example"},
		"does not fit the certificate":   {"-tls-cert", s.ca.Path("user.pem"), "-tls-key", s.ca.Path("server.key")},
		"there is no certificate in PEM": {"-tls-ca", s.ca.Path("user.key")},
	} {
		r := command(t, "", append(ca[:len(ca):len(ca)], args...)...)
		require.Equal(t, 1, r.exit, want)
		require.Contains(t, r.stderr, want)
	}
	t.Setenv("GOTYCOON_TLS", "maybe")
	require.Contains(t, command(t, "", "inform", "-port", s.data).stderr, "GOTYCOON_TLS=maybe: must be 1 or 0")
}
