package client_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/internal/freeport"
	"gotycoon/internal/tlsfiles"
	"gotycoon/internal/tlsfiles/testca"
	"gotycoon/server"
)

// startTLS runs a server with a certificate, and returns what its clients need.
func startTLS(t *testing.T, change func(*server.Config)) (*testServer, *tls.Config) {
	t.Helper()
	ca, err := testca.New(t.TempDir(), "ca")
	require.NoError(t, err)
	_, err = ca.Issue(testca.Spec{Name: "server", Hosts: []string{"127.0.0.1"}})
	require.NoError(t, err)
	cfg := server.DefaultConfig()
	cfg.TLS = server.TLSConfig{Cert: ca.Path("server.pem"), Key: ca.Path("server.key")}
	if change != nil {
		change(&cfg)
	}
	files, err := tlsfiles.NewClient(tlsfiles.ClientOptions{Files: tlsfiles.Files{CA: ca.Path("ca.pem")}})
	require.NoError(t, err)
	config := files.Config("") // the name is that of the address
	return startServer(cfg), config
}

func TestCallsOverTLS(t *testing.T) {
	s, config := startTLS(t, nil)
	defer s.stop()
	ctx := t.Context()
	c := client.New(s.addr, client.Options{TLS: config})
	defer c.Close()
	require.NoError(t, c.Connect(ctx))
	large := []byte(strings.Repeat("0123456789", 300_000))
	for _, value := range [][]byte{[]byte("v"), large, nil, large} {
		require.NoError(t, c.DB("").Set(ctx, "k", value, client.Never))
		got, err := c.DB("").Get(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, string(value), string(got))
		records, err := c.GetBinary(ctx, 0, []string{"k"})
		require.NoError(t, err)
		require.Len(t, records, 1)
	}
	plain := client.New(s.addr, client.Options{})
	defer plain.Close()
	require.Error(t, plain.DB("").Set(ctx, "k", nil, client.Never))
}

func TestOneConnectionOverTLSServesManyCalls(t *testing.T) {
	s, config := startTLS(t, nil)
	defer s.stop()
	c := client.New(s.addr, client.Options{TLS: config})
	defer c.Close()
	var report client.Rows
	for range 20 {
		var err error
		report, err = c.Report(t.Context())
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, report.Int("serv_conn_count"))
}

// TestARestartIsNoticedOverTLS shows that an idle connection which the server has closed is not
// used again.
func TestARestartIsNoticedOverTLS(t *testing.T) {
	s, config := startTLS(t, nil)
	c := client.New(s.addr, client.Options{TLS: config})
	defer c.Close()
	ctx := t.Context()
	require.NoError(t, c.Connect(ctx)) // nothing has been read from the connection
	require.NoError(t, c.DB("").Set(ctx, "k", nil, client.Never))
	s.stop()
	_, text, err := net.SplitHostPort(s.addr)
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	l, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
	require.NoError(t, err)
	defer l.Close()
	ended := make(chan error, 1)
	go func() { // a server that says nothing, but is there
		nc, err := l.Accept()
		if err == nil {
			err = nc.Close()
		}
		ended <- err
	}()
	require.Error(t, c.DB("").Set(ctx, "k", nil, client.Never))
	require.NoError(t, <-ended, "a new connection was made")
}

func TestManyGoroutinesFetchNumbersOverTLS(t *testing.T) {
	dir, port := t.TempDir(), freeport.Take(t)
	s, config := startTLS(t, func(c *server.Config) {
		c.Services.SequencePort, c.Services.Database = port, dir+"/services.kct"
		c.UpdateLog, c.ServerID = dir+"/ulog", 1
	})
	defer s.stop()
	c := client.NewSequence(fmt.Sprintf("127.0.0.1:%d", port), "", client.Options{TLS: config})
	defer c.Close()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			numbers, err := c.Fetch(t.Context(), 3)
			if err != nil || len(numbers) != 3 {
				t.Errorf("%v %v", numbers, err)
			}
		})
	}
	all.Wait()
}
