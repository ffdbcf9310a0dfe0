package tlsport_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/tlsfiles"
	"gotycoon/internal/tlsport"
)

func TestBytesGoBothWays(t *testing.T) {
	server, client := open(t, nil).pair("")
	for _, n := range []int{1, 2, 16 << 10, 100_000} {
		text := strings.Repeat("x", n-1) + "."
		go send(t, client, text)
		require.NoError(t, server.Wait())
		require.NoError(t, server.Wait(), "nothing is taken")
		require.Equal(t, text, read(t, server, n))
		go send(t, server, text)
		require.Equal(t, text, read(t, client, n))
	}
	_, ok := tlsport.PeerOf(server)
	require.False(t, ok, "there is no certificate")
	client.Close()
	require.ErrorIs(t, server.Wait(), io.EOF)
}

// TestReadsDoNotWaitForMore shows that bytes are returned as soon as they arrive, also after Wait.
func TestReadsDoNotWaitForMore(t *testing.T) {
	server, client := open(t, nil).pair("")
	require.NoError(t, server.SetReadDeadline(time.Now().Add(patience)))
	buf := make([]byte, 100)
	for _, text := range []string{"1", "22", "333"} {
		send(t, client, text)
		require.NoError(t, server.Wait())
		n, err := server.Read(buf)
		require.NoError(t, err)
		require.Equal(t, text, string(buf[:n]))
	}
	require.NoError(t, server.SetReadDeadline(time.Unix(1, 0)))
	require.ErrorIs(t, server.Wait(), os.ErrDeadlineExceeded)
	require.NoError(t, server.SetReadDeadline(time.Time{}))
	send(t, client, "again")
	require.NoError(t, server.Wait(), "TLS goes on after a deadline")
	require.Equal(t, "again", read(t, server, 5))
}

func TestPeerOf(t *testing.T) {
	p := open(t, nil)
	server, _ := p.pair("user")
	peer, ok := tlsport.PeerOf(server)
	require.True(t, ok)
	require.Equal(t, tlsport.Peer{CommonName: "user", DNSNames: []string{"user.example"}, Serial: fmt.Sprintf("%x", p.user)}, peer)
	_, ok = tlsport.PeerOf(p.dial())
	require.False(t, ok)
}

func TestPlaintextIsRefused(t *testing.T) {
	p := open(t, nil)
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n": "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n" +
			"Content-Length: 32\r\n\r\nthis port speaks TLS: use https",
		"get key\r\n": "",
		"\xb8\x00":    "",
	} {
		c := p.dial()
		send(t, c, request)
		server := p.accept()
		_, err := server.Open()
		require.Error(t, err)
		go func() { // as soon as the client has read
			server.Close()
		}()
		reply, _ := io.ReadAll(c) // closing with unread bytes resets the connection
		require.Equal(t, want, strings.TrimSpace(string(reply)))
	}
	require.Equal(t, 1, strings.Count(p.log.String(), "speaks plaintext"), "lines are rare")
	require.Contains(t, p.log.String(), "-tls allowed")
}

func TestPlaintextAndTLSSideBySide(t *testing.T) {
	p := open(t, func(o *tlsport.Options) { o.Plaintext, o.Handshake = true, time.Millisecond })
	c := p.dial()
	server := p.accept()
	opened := make(chan net.Conn)
	go func() { // waits longer than a handshake may take
		bare, err := server.Open()
		if err != nil {
			bare = nil
		}
		opened <- bare
	}()
	select {
	case <-opened:
		t.Fatal("nothing has been sent")
	case <-time.After(20 * time.Millisecond):
	}
	send(t, c, "get key\r\n")
	bare := <-opened
	require.IsType(t, &net.TCPConn{}, bare)
	require.Equal(t, "get key\r\n", read(t, bare, 9))

	p = open(t, func(o *tlsport.Options) { o.Plaintext = true })
	secure, client := p.pair("user")
	send(t, client, "x")
	require.Equal(t, "x", read(t, secure, 1))
}

func TestHandshakesHaveALimit(t *testing.T) {
	for name, first := range map[string]string{"nothing": "", "half a handshake": "\x16\x03\x01"} {
		p := open(t, func(o *tlsport.Options) { o.Handshake = 20 * time.Millisecond })
		c := p.dial()
		send(t, c, first)
		_, err := p.accept().Open()
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, name)
		require.Contains(t, p.log.String(), "no handshake")
	}
}

func TestADeadlineOfTheUserEndsAHandshake(t *testing.T) {
	p := open(t, nil)
	p.dial()
	server := p.accept()
	require.NoError(t, server.SetReadDeadline(time.Unix(1, 0)))
	_, err := server.Open()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// TestSlowReaders shows that a write deadline limits each wait for send space.
func TestSlowReaders(t *testing.T) {
	server, client := open(t, nil).pair("")
	const size, step, limit = 64 << 20, 1 << 20, 2 * time.Second
	require.NoError(t, server.SetWriteDeadline(time.Now().Add(limit)))
	sent := make(chan error, 1)
	go func() {
		_, err := server.Write(make([]byte, size))
		sent <- err
	}()
	for range size / step { // which takes longer than the limit
		_, err := io.CopyN(io.Discard, client, step)
		require.NoError(t, err)
		<-time.After(limit / 30)
	}
	require.NoError(t, <-sent)

	require.NoError(t, server.SetWriteDeadline(time.Now().Add(limit)))
	_, err := server.Write(make([]byte, size))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	closed := make(chan error, 1)
	go func() { closed <- server.Close() }()
	select {
	case <-closed: // without waiting for who takes nothing
	case <-time.After(patience):
		t.Fatal("still closing")
	}
}

// TestRevocationEndsConnections shows that a revocation list takes effect on open connections.
func TestRevocationEndsConnections(t *testing.T) {
	p := open(t, nil)
	good, err := p.ca.Issue(spec("good"))
	require.NoError(t, err)
	require.NotZero(t, good)
	badServer, bad := p.pair("user")
	goodServer, goodClient := p.pair("good")
	noneServer, noneClient := p.pair("")
	require.NoError(t, p.ca.Revoke("crl.pem", p.user))
	_, err = badServer.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = bad.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Contains(t, p.log.String(), "is revoked")
	for c, s := range map[*tls.Conn]*tlsport.Conn{goodClient: goodServer, noneClient: noneServer} {
		send(t, c, "x")
		require.Equal(t, "x", read(t, s, 1))
	}
}

// TestHTTPServer shows a server that knows nothing of Open.
func TestHTTPServer(t *testing.T) {
	p := open(t, func(o *tlsport.Options) { o.Plaintext = true })
	type key struct{}
	s := http.Server{
		ReadHeaderTimeout: patience,
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, key{}, c) },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			peer, _ := tlsport.PeerOf(r.Context().Value(key{}).(net.Conn))
			fmt.Fprintf(w, "hello %s", peer.CommonName)
		}),
	}
	go func() { _ = s.Serve(p.l) }()
	defer s.Close()
	files, err := tlsfiles.NewClient(tlsfiles.ClientOptions{
		Files: tlsfiles.Files{CA: p.ca.Path("ca.pem"), Cert: p.ca.Path("user.pem"), Key: p.ca.Path("user.key")}})
	require.NoError(t, err)
	transport := &http.Transport{TLSClientConfig: files.Config("")}
	defer transport.CloseIdleConnections()
	for scheme, want := range map[string]string{"http": "hello ", "https": "hello user"} {
		r, err := (&http.Client{Transport: transport, Timeout: patience}).Get(scheme + "://" + p.l.Addr().String())
		require.NoError(t, err)
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		r.Body.Close()
		require.Equal(t, want, string(body))
	}
}
