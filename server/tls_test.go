package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ktclient "gotycoon/client"
	"gotycoon/internal/freeport"
	"gotycoon/internal/tlsfiles"
	"gotycoon/internal/tlsfiles/testca"
	"gotycoon/server"
)

// authority makes an authority that has signed "server", and the clients "user", "gone", which a
// list revokes, and "late", which has expired.
func authority(t *testing.T) *testca.CA {
	t.Helper()
	ca, err := testca.New(t.TempDir(), "ca")
	require.NoError(t, err)
	serials := map[string]int64{}
	for _, s := range []testca.Spec{
		{Name: "server", Hosts: []string{"localhost", "127.0.0.1"}},
		{Name: "user", Client: true}, {Name: "gone", Client: true}, {Name: "late", Client: true, Expired: true},
	} {
		serials[s.Name], err = ca.Issue(s)
		require.NoError(t, err)
	}
	require.NoError(t, ca.Revoke("crl.pem", serials["gone"]))
	return ca
}

// withTLS lets the ports speak TLS with certificates on both sides.
func withTLS(c *server.Config, ca *testca.CA) {
	c.TLS = server.TLSConfig{Cert: ca.Path("server.pem"), Key: ca.Path("server.key"), CA: ca.Path("ca.pem"), CRL: ca.Path("crl.pem")}
}

// trusting is the configuration of a client with the certificate of a name, or without a
// certificate.
func trusting(t *testing.T, ca *testca.CA, name string) *tls.Config {
	t.Helper()
	f := tlsfiles.Files{CA: ca.Path("ca.pem")}
	if name != "" {
		f.Cert, f.Key = ca.Path(name+".pem"), ca.Path(name+".key")
	}
	c, err := tlsfiles.NewClient(tlsfiles.ClientOptions{Files: f})
	require.NoError(t, err)
	return c.Config("localhost")
}

// everyPort is a server with all ports that there are.
type everyPort struct {
	*running
	ca                                        *testca.CA
	memcached, counter, lock, sequence, quota string
}

func startEveryPort(t *testing.T, change func(*server.Config)) *everyPort {
	t.Helper()
	e := &everyPort{ca: authority(t)}
	var ports []int
	e.running = start(t, func(c *server.Config) {
		for range 5 {
			ports = append(ports, freeport.Take(t))
		}
		withTLS(c, e.ca)
		dir := t.TempDir()
		c.Plugins.MemcachePort = ports[0]
		c.Services = server.ServicesConfig{
			CounterPort: ports[1], LockPort: ports[2], SequencePort: ports[3], QuotaPort: ports[4], Limit: 100,
			Database: filepath.Join(dir, "services.kct"),
		}
		c.UpdateLog, c.ServerID = filepath.Join(dir, "ulog"), 1
		if change != nil {
			change(c)
		}
	})
	for i, addr := range []*string{&e.memcached, &e.counter, &e.lock, &e.sequence, &e.quota} {
		*addr = fmt.Sprintf("127.0.0.1:%d", ports[i])
	}
	return e
}

// ask makes a request of each protocol over TLS, or in plaintext where the configuration is nil,
// and returns the errors by protocol.
func (e *everyPort) ask(config *tls.Config) map[string]error {
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	all := map[string]error{}
	db := ktclient.New(e.addr, ktclient.Options{TLS: config})
	defer db.Close()
	all["http"] = db.DB("").Set(ctx, "key", []byte("value"), ktclient.Never)
	_, all["binary"] = db.GetBinary(ctx, 0, []string{"key"})
	all["follow"] = follow(ctx, db)
	all["copy"] = db.DB("").Copy(ctx, ktclient.CopyOptions{
		Begin: func(ktclient.CopyInfo) error { return nil }, Visit: func(_, _ []byte) error { return nil }})
	all["memcached"] = e.askMemcached(ctx, config)
	counters, err := ktclient.DialCounters(ctx, e.counter, ktclient.Options{TLS: config})
	if err == nil {
		err = counters.Acquire(ctx, "c", 1, 1)
		counters.Close()
	}
	all["counter"] = err
	locks := ktclient.NewLocks(e.lock, ktclient.Options{TLS: config})
	held, err := locks.Acquire(ctx, "l", ktclient.LockOptions{Wait: time.Minute})
	if err == nil {
		err = held.Release(ctx)
	}
	all["lock"] = err
	_, all["sequence"] = ktclient.NewSequence(e.sequence, "", ktclient.Options{TLS: config}).Fetch(ctx, 2)
	_, all["quota"] = ktclient.NewQuota(e.quota, "", ktclient.Options{TLS: config}).Query(ctx)
	return all
}

func follow(ctx context.Context, c *ktclient.Client) error {
	for _, err := range c.FollowLog(ctx, 0, 99, false) {
		return err
	}
	return errors.New("nothing")
}

func (e *everyPort) askMemcached(ctx context.Context, config *tls.Config) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", e.memcached)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if config != nil {
		c = tls.Client(c, config)
	}
	if _, err := io.WriteString(c, "set m 0 0 1\r\nx\r\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && line != "STORED\r\n" {
		err = fmt.Errorf("it says %q", line)
	}
	return err
}

func TestEveryPortSpeaksTLS(t *testing.T) {
	e := startEveryPort(t, nil)
	for name, err := range e.ask(trusting(t, e.ca, "user")) {
		require.NoError(t, err, name)
	}
	for _, name := range []string{"", "gone", "late"} {
		for port, err := range e.ask(trusting(t, e.ca, name)) {
			require.Error(t, err, "%s as %q", port, name)
		}
	}
	for port, err := range e.ask(nil) {
		require.Error(t, err, port)
	}
	wrong := trusting(t, e.ca, "user")
	wrong.ServerName = "other.example"
	for port, err := range e.ask(wrong) {
		require.ErrorContains(t, err, "other.example", port)
	}
	require.True(t, slices.ContainsFunc(e.log.lines(), func(l string) bool { return strings.Contains(l, "speaks plaintext to a port for TLS") }))
}

func TestCertificatesOfClientsCanBeOptional(t *testing.T) {
	e := startEveryPort(t, func(c *server.Config) { c.TLS.Client = server.TLSOptional })
	for _, name := range []string{"user", ""} {
		for port, err := range e.ask(trusting(t, e.ca, name)) {
			require.NoError(t, err, "%s as %q", port, name)
		}
	}
	for port, err := range e.ask(trusting(t, e.ca, "gone")) {
		require.Error(t, err, port)
	}
}

func TestEveryPortTakesBothWhileClientsAreChangedOver(t *testing.T) {
	e := startEveryPort(t, func(c *server.Config) { c.TLS.Mode = server.TLSAllowed })
	for _, config := range []*tls.Config{trusting(t, e.ca, "user"), nil} {
		for port, err := range e.ask(config) {
			require.NoError(t, err, port)
		}
	}
	for port, err := range e.ask(trusting(t, e.ca, "")) {
		require.Error(t, err, port)
	}
}

// TestNoRequestBeginsLikeAHandshake proves the assumption behind -tls allowed: no port carries out
// a plaintext request whose first byte is the first byte of a handshake.
func TestNoRequestBeginsLikeAHandshake(t *testing.T) {
	e := startEveryPort(t, func(c *server.Config) { c.TLS = server.TLSConfig{} })
	for addr, want := range map[string]string{
		e.addr:      "^HTTP/1.1 501 ",
		e.memcached: "^$",
		e.counter:   "^$",
		e.lock:      "^$",
		e.sequence:  "^$",
		e.quota:     "^$",
	} {
		c, err := net.Dial("tcp4", addr)
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		_, err = io.WriteString(c, "\x16\x03\x01 / HTTP/1.1\r\n\r\n"+strings.Repeat("\x00", 32))
		require.NoError(t, err)
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		reply, _ := io.ReadAll(c)
		require.Regexp(t, want, string(reply), addr)
	}
	ctx := t.Context()
	n, err := ktclient.New(e.addr, ktclient.Options{}).DB("").Status(ctx)
	require.NoError(t, err)
	require.Equal(t, "0", string(n["count"]))
}

func TestPlainPortBesideTLS(t *testing.T) {
	port := freeport.Take(t)
	e := startEveryPort(t, func(c *server.Config) { c.TLS.PlainPort = port })
	ctx := t.Context()
	plain := ktclient.New(fmt.Sprintf("127.0.0.1:%d", port), ktclient.Options{})
	defer plain.Close()
	require.NoError(t, plain.DB("").Set(ctx, "k", []byte("v"), ktclient.Never))
	secure := ktclient.New(e.addr, ktclient.Options{TLS: trusting(t, e.ca, "user")})
	defer secure.Close()
	value, err := secure.DB("").Get(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "v", string(value))
	require.Zero(t, e.stop())
	require.Error(t, plain.DB("").Set(ctx, "k", []byte("v"), ktclient.Never))
}

// TestReloadUnderLoad replaces certificates while clients connect and make requests: none may fail.
func TestReloadUnderLoad(t *testing.T) {
	ca := authority(t)
	s := start(t, func(c *server.Config) { withTLS(c, ca) })
	ctx := t.Context()
	var stop atomic.Bool
	var requests, connections atomic.Int64
	var all sync.WaitGroup
	failed := make(chan error, 8)
	for i := range 4 {
		all.Go(func() {
			kept := ktclient.New(s.addr, ktclient.Options{TLS: trusting(t, ca, "user")})
			defer kept.Close()
			for !stop.Load() {
				fresh := ktclient.New(s.addr, ktclient.Options{TLS: trusting(t, ca, "user")})
				err := errors.Join(kept.DB("").Set(ctx, fmt.Sprint(i), []byte("x"), ktclient.Never), fresh.DB("").Set(ctx, fmt.Sprint(i), []byte("y"), ktclient.Never))
				fresh.Close()
				if err != nil {
					failed <- err
					return
				}
				requests.Add(2)
				connections.Add(1)
			}
		})
	}
	serials := map[string]bool{}
	for range 3 {
		before := connections.Load()
		serial, err := ca.Issue(testca.Spec{Name: "server", Hosts: []string{"localhost", "127.0.0.1"}})
		require.NoError(t, err)
		eventually(t, func() bool {
			c, err := tls.Dial("tcp4", s.addr, trusting(t, ca, "user"))
			require.NoError(t, err)
			defer c.Close()
			got := c.ConnectionState().PeerCertificates[0].SerialNumber
			serials[got.String()] = true
			return got.Int64() == serial && connections.Load() > before+10
		})
	}
	stop.Store(true)
	all.Wait()
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	require.GreaterOrEqual(t, len(serials), 3)
	t.Logf("%d requests, %d connections", requests.Load(), connections.Load())
}

// TestRevocationWithoutRestart shows that a revocation list takes effect on open connections: an
// idle connection, the holder of a lock, a follower.
func TestRevocationWithoutRestart(t *testing.T) {
	e := startEveryPort(t, nil)
	serial, err := e.ca.Issue(testca.Spec{Name: "soon", Client: true})
	require.NoError(t, err)
	ctx := t.Context()
	config := trusting(t, e.ca, "soon")
	locks := ktclient.NewLocks(e.lock, ktclient.Options{TLS: config})
	held, err := locks.Acquire(ctx, "l", ktclient.LockOptions{})
	require.NoError(t, err)
	idle, err := tls.Dial("tcp4", e.addr, config)
	require.NoError(t, err)
	defer idle.Close()
	require.NoError(t, idle.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(idle, "GET /rpc/void HTTP/1.1\r\n\r\n")
	require.NoError(t, err)
	in := bufio.NewReader(idle)
	_, err = in.ReadString('\n')
	require.NoError(t, err)
	following := make(chan error, 1)
	follower := ktclient.New(e.addr, ktclient.Options{TLS: config})
	defer follower.Close()
	began := make(chan struct{})
	go func() {
		once := sync.OnceFunc(func() { close(began) })
		for _, err := range follower.FollowLog(ctx, 0, 99, false) {
			if err != nil {
				following <- err
			}
			once()
		}
	}()
	<-began

	require.NoError(t, e.ca.Revoke("crl.pem", serial))
	_, err = io.ReadAll(in)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	for what, ended := range map[string]func() bool{
		"lock":     func() bool { return held.Err() != nil },
		"follower": func() bool { return len(following) == 1 },
	} {
		require.Eventually(t, ended, patience, time.Millisecond, what)
	}
	require.Error(t, held.Release(ctx))
	for port, err := range e.ask(trusting(t, e.ca, "user")) {
		require.NoError(t, err, port)
	}
}

// A follower over TLS fetches copies over TLS, too.
func TestCopyOverTLS(t *testing.T) {
	dir := t.TempDir()
	ca := authority(t)
	master := start(t, func(c *server.Config) {
		c.UpdateLog, c.ServerID = filepath.Join(dir, "ulog"), 1
		withTLS(c, ca)
	})
	c := ktclient.New(master.addr, ktclient.Options{TLS: trusting(t, ca, "user")})
	defer c.Close()
	require.NoError(t, c.DB("").Set(t.Context(), "k", []byte("1"), ktclient.Never))
	rts := filepath.Join(dir, "rts")
	require.NoError(t, os.WriteFile(rts, fmt.Appendf(nil, "%020d\n", uint64(1)<<62), 0o600))
	slave := start(t, func(c *server.Config) { // it has lost the updates that it had
		c.ServerID, c.RTSPath, c.MasterHost, c.MasterPort = 2, rts, "127.0.0.1", master.port()
		c.TLS = server.TLSConfig{MasterCA: ca.Path("ca.pem"), MasterCert: ca.Path("user.pem"), MasterKey: ca.Path("user.key")}
	})
	slave.dial().awaitValue("k", "1")
}

// TestReplicationOverMutualTLS shows a slave that follows, and slaves whose certificate, name or
// authority is wrong.
func TestReplicationOverMutualTLS(t *testing.T) {
	dir := t.TempDir()
	ca := authority(t)
	master := start(t, func(c *server.Config) {
		c.UpdateLog, c.ServerID = filepath.Join(dir, "ulog"), 1
		withTLS(c, ca)
	})
	c := ktclient.New(master.addr, ktclient.Options{TLS: trusting(t, ca, "user")})
	defer c.Close()
	require.NoError(t, c.DB("").Set(t.Context(), "k", []byte("1"), ktclient.Never))
	good := server.TLSConfig{MasterCA: ca.Path("ca.pem"), MasterCert: ca.Path("user.pem"), MasterKey: ca.Path("user.key")}
	follow := func(name string, change func(*server.TLSConfig)) *client {
		slave := start(t, func(c *server.Config) {
			c.ServerID, c.RTSPath, c.MasterHost, c.MasterPort = 2, filepath.Join(dir, name), "127.0.0.1", master.port()
			c.TLS = good
			change(&c.TLS)
		})
		return slave.dial()
	}
	slave := follow("good", func(*server.TLSConfig) {})
	slave.awaitValue("k", "1")
	require.NoError(t, c.DB("").Set(t.Context(), "k", []byte("2"), ktclient.Never))
	slave.awaitValue("k", "2")
	follow("named", func(c *server.TLSConfig) { c.MasterName = "localhost" }).awaitValue("k", "2")

	for name, row := range map[string]struct {
		change func(*server.TLSConfig)
		line   string
	}{
		"other name": {func(c *server.TLSConfig) { c.MasterName = "other.example" }, "certificate is valid for localhost, not other.example"},
		"revoked": {
			func(c *server.TLSConfig) { c.MasterCert, c.MasterKey = ca.Path("gone.pem"), ca.Path("gone.key") }, "remote error: tls: bad certificate"},
		"without":            {func(c *server.TLSConfig) { c.MasterCert, c.MasterKey = "", "" }, "remote error: tls: certificate required"},
		"system authorities": {func(c *server.TLSConfig) { *c = server.TLSConfig{MasterTLS: true} }, "unknown authority"},
		"plaintext":          {func(c *server.TLSConfig) { *c = server.TLSConfig{} }, "replication was deferred"},
	} {
		slave := start(t, func(c *server.Config) {
			c.ServerID, c.RTSPath, c.MasterHost, c.MasterPort = 2, filepath.Join(dir, name), "127.0.0.1", master.port()
			c.TLS = good
			row.change(&c.TLS)
		})
		eventually(t, func() bool {
			return slices.ContainsFunc(slave.log.lines(), func(l string) bool { return strings.Contains(l, row.line) })
		})
		status, _ := slave.dial().get("/rpc/get?key=k")
		require.Equal(t, 450, status, name)
	}
}

// TestStopWithHandshakesUnderWay shows that clients which send nothing do not delay the stop.
func TestStopWithHandshakesUnderWay(t *testing.T) {
	e := startEveryPort(t, nil)
	for _, addr := range []string{e.addr, e.memcached, e.lock} {
		for _, first := range []string{"", "\x16\x03"} {
			c, err := net.Dial("tcp4", addr)
			require.NoError(t, err)
			defer c.Close()
			_, err = io.WriteString(c, first)
			require.NoError(t, err)
		}
	}
	eventually(t, func() bool { return strings.Count(strings.Join(e.log.lines(), "\n"), "connected: expr=") >= 2 })
	require.Zero(t, e.stop())
}

func TestOptionsOfTLSThatCannotBeMeant(t *testing.T) {
	ca := authority(t)
	cert, key, authorities := ca.Path("server.pem"), ca.Path("server.key"), ca.Path("ca.pem")
	for want, c := range map[string]server.TLSConfig{
		"belong together":                  {Cert: cert},
		"need a certificate":               {PlainPort: 5},
		"need the authorities":             {Cert: cert, Key: key, CRL: authorities},
		`-tls is required or allowed`:      {Cert: cert, Key: key, Mode: "maybe"},
		"-tls-client is required or opt":   {Cert: cert, Key: key, CA: authorities, Client: "maybe"},
		"-plain-port: a port is at most":   {Cert: cert, Key: key, PlainPort: 40000},
		"does not fit the certificate":     {Cert: cert, Key: ca.Path("user.key")},
		"no such file or directory":        {Cert: cert, Key: ca.Path("none")},
		"TLS to the master: open ":         {MasterCA: ca.Path("none")},
		"TLS to the master: a client's ce": {MasterCert: cert},
	} {
		cfg := server.DefaultConfig()
		cfg.TLS = c
		var stderr strings.Builder
		if strings.Contains(want, "open ") {
			want = strings.Replace(want, "open", "stat", 1)
		}
		require.Equal(t, 1, server.Run(t.Context(), cfg, io.Discard, &stderr))
		require.Contains(t, stderr.String(), want)
	}
}

// A memcached client with a certificate has a name: an update that it may not make is refused as
// such, not as a wrong password.
func TestACertificateIsNoWrongPassword(t *testing.T) {
	ca := authority(t)
	path := filepath.Join(t.TempDir(), "access")
	accessFile(t, path, "anna", "cert user", "allow user write prefix=a:", "allow anna write")
	var ports map[string]int
	s := start(t, func(c *server.Config) { withTLS(c, ca); c.Access.Path = path; ports = openPorts(t, c) })
	dial := &tls.Dialer{Config: trusting(t, ca, "user")}
	c, err := dial.DialContext(t.Context(), "tcp", fmt.Sprintf("localhost:%d", ports["memcache"]))
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(c, "set a:1 0 0 1\r\nx\r\nset b:1 0 0 9\r\nanna anna\r\nquit\r\n")
	require.NoError(t, err)
	answer, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "STORED\r\nCLIENT_ERROR access denied: user has no right to write for this key of database 0 (:)\r\n", string(answer))
	require.NotContains(t, strings.Join(s.log.lines(), "\n"), "wrong credentials")
}

// A certificate that ends soon is an alarm before clients are refused, and no more when another is
// in its place.
func TestACertificateThatEndsSoonIsAnAlarm(t *testing.T) {
	ca := authority(t)
	_, err := ca.Issue(testca.Spec{Name: "server", Hosts: []string{"localhost"}, Life: 24 * time.Hour})
	require.NoError(t, err)
	s, addr := startAdmin(t, func(c *server.Config) { withTLS(c, ca); c.TLS.Mode = server.TLSAllowed })
	ready(t, addr)
	status, text := fetch(t, addr, "/readyz")
	require.Equal(t, 200, status)
	require.Regexp(t, `^ok\nthe certificate in .*server\.pem expires on 20..-..-..T..:..:..Z, and then clients refuse it\. Put a new one .* \(since 20.*Z\)\n$`, text)
	require.Equal(t, "ok\n"+s.ask("/rpc/report")["alarm_certificate"]+"\n", text)
	_, figures := fetch(t, addr, "/metrics")
	require.InDelta(t, time.Now().Add(24*time.Hour).Unix(), sample(t, figures, `gotycoon_certificate_expiry_timestamp_seconds{certificate="ports"}`), 3600)
	eventually(t, func() bool { return s.says("[ERROR]: alarm certificate: the certificate in ") })

	_, err = ca.Issue(testca.Spec{Name: "server", Hosts: []string{"localhost"}})
	require.NoError(t, err)
	eventually(t, func() bool { _, text := fetch(t, addr, "/readyz"); return text == "ok\n" })
	require.True(t, s.says("[SYSTEM]: alarm certificate is over"))
}
