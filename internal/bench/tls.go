//go:build linux

package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/internal/tlsfiles"
	"gotycoon/internal/tlsfiles/testca"
)

const (
	tlsConnections = 64
	tlsClients     = 8 // that do nothing but handshakes
)

// tls compares requests with and without TLS on 64 connections, and counts handshakes. The
// encryption in wrk takes part of the machine too.
func (b *bench) tls() error {
	ca, dir, err := certificates()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, err := start(b.server, "-port", "$PORT", "-plain-port", "$PORT1", "-le",
		"-tls-cert", ca.Path("server.pem"), "-tls-key", ca.Path("server.key"), "-tls-ca", ca.Path("ca.pem"), "-tls-client", "optional", ":")
	if err != nil {
		return err
	}
	defer p.stop() // a measurement's end
	b.table("TLS 1.3, 64 connections, no pipelining, values of 100 bytes, requests/s", "operation", "plaintext", "TLS", "ratio",
		"processor time of the server per request, plaintext", "TLS")
	for _, op := range []operation{set, get} {
		plain, plainCost, err := b.wrkCost(p, op, "http://"+p.further(1))
		if err != nil {
			return err
		}
		secure, secureCost, err := b.wrkCost(p, op, "https://"+p.addr())
		if err != nil {
			return err
		}
		b.row(op.name, plain, secure, ratio(secure/plain), plainCost, secureCost)
	}
	b.table("Handshakes, ECDSA P-256, 8 clients, per second", "client", "handshakes/s", "per core of the server")
	for _, kind := range []struct{ name, cert string }{{"without a certificate", ""}, {"with one", "user"}, {"without one, resumed", "resumed"}} {
		if err := b.handshakes(p, ca, kind.name, kind.cert); err != nil {
			return err
		}
	}
	return nil
}

// certificates makes an authority, a server's and a client's certificate in a temporary directory.
func certificates() (*testca.CA, string, error) {
	dir, err := os.MkdirTemp("", "bench-tls-")
	if err != nil {
		return nil, "", err
	}
	ca, err := testca.New(dir, "ca")
	if err != nil {
		return nil, dir, err
	}
	_, serverErr := ca.Issue(testca.Spec{Name: "server", Hosts: []string{"127.0.0.1"}})
	_, userErr := ca.Issue(testca.Spec{Name: "user", Client: true})
	return ca, dir, errors.Join(serverErr, userErr)
}

// wrkCost loads a URL and returns requests per second and the server's processor time for a
// request.
func (b *bench) wrkCost(p *process, op operation, url string) (perSecond float64, cost time.Duration, err error) {
	before, err := p.cpu()
	if err != nil {
		return 0, 0, err
	}
	if perSecond, err = b.wrkScript(p, url, fmt.Sprintf(op.script, valueSize, keySpace), tlsConnections); err != nil {
		return 0, 0, err
	}
	after, err := p.cpu()
	if err != nil {
		return 0, 0, err
	}
	return perSecond, time.Duration(float64(after-before) / (perSecond * b.length.Seconds())), nil
}

// handshakes counts connections that are opened and closed.
func (b *bench) handshakes(p *process, ca *testca.CA, name, cert string) error {
	f := tlsfiles.Files{CA: ca.Path("ca.pem")}
	if cert == "user" {
		f.Cert, f.Key = ca.Path("user.pem"), ca.Path("user.key")
	}
	client, err := tlsfiles.NewClient(tlsfiles.ClientOptions{Files: f})
	if err != nil {
		return err
	}
	config := client.Config("127.0.0.1")
	if cert != "resumed" {
		config.ClientSessionCache = nil
	}
	before, err := p.cpu()
	if err != nil {
		return err
	}
	var count atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, tlsClients)
	until := time.Now().Add(b.length)
	for i := range tlsClients {
		all.Go(func() {
			for time.Now().Before(until) && errs[i] == nil {
				errs[i] = shake(p.addr(), config)
				count.Add(1)
			}
		})
	}
	all.Wait()
	after, err := p.cpu()
	if err != nil {
		return err
	}
	n := float64(count.Load())
	b.row(name, n/b.length.Seconds(), n/(after-before).Seconds())
	return errors.Join(errs...)
}

// shake opens a connection, makes a request and closes the connection. The session that can be
// resumed arrives with the reply.
func shake(addr string, config *tls.Config) error {
	c, err := tls.Dial("tcp", addr, config)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte("GET /x HTTP/1.1\r\n\r\n")); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 512))
	return err
}
