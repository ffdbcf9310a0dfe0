package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/access"
	"gotycoon/client/wire/frame"
	"gotycoon/internal/freeport"
	"gotycoon/internal/member"
	"gotycoon/internal/tlsfiles/testca"
	"gotycoon/server"
)

const (
	clusterSecret = "a secret of at least 32 characters"
	friend        = "192.0.2.7:4711" // clients of another member
	stranger      = "192.0.2.8:4711"
)

// secretFile writes the file of a cluster's secret and returns its path.
func secretFile(t *testing.T, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte(secret), 0o600))
	return path
}

// asMember are the options of a member with a secret that has a client at an address.
func asMember(t *testing.T, secret string, kind frame.MemberKind, address string) member.Options {
	t.Helper()
	s, err := member.ReadSecrets(secretFile(t, secret), nil)
	require.NoError(t, err)
	return member.Options{Secrets: s, Kind: kind, Name: "other:1978", Client: &access.Client{Address: address}}
}

// converse sends a request on a connection of a member, and returns how the answer begins.
func converse(t *testing.T, addr string, o member.Options, request string, size int) string {
	t.Helper()
	c, err := member.Dial(t.Context(), addr, o)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(c, request)
	require.NoError(t, err)
	answer := make([]byte, size)
	n, _ := io.ReadAtLeast(c, answer, 1)
	return string(answer[:n])
}

// kinds are a request of each kind of connection, and how its answer begins.
var kinds = []struct {
	kind            frame.MemberKind
	request, answer string
}{
	{frame.MemberData, "PUT /k HTTP/1.1\r\nContent-Length: 1\r\n\r\nv", "HTTP/1.1 201"},
	{frame.MemberData, "\xba\x00\x00\x00\x00\x00\x00\x00\x00", "\xba\x00\x00\x00\x00"},
	{frame.MemberMemcached, "set m 0 0 1\r\nx\r\n", "STORED\r\n"},
	{frame.MemberCounter, "\x90\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01", "\x91\x00\x00\x00"},
	{frame.MemberLock, "lock a\n", "GRANTED"},
	{frame.MemberSequence, "GET /fetch HTTP/1.1\r\n\r\n", "HTTP/1.1 200"},
	{frame.MemberQuota, "GET /query HTTP/1.1\r\n\r\n", "HTTP/1.1 200"},
}

// The rules of the access file apply to the client that a member speaks for, on every port, though
// the member itself comes from an address that no rule lets in.
func TestMembersSpeakForTheirClients(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access")
	accessFile(t, path, "", "allow anyone read,write db=* service=counter,lock,sequence,quota from=192.0.2.7")
	s := start(t, func(c *server.Config) {
		c.Access.Path, c.Members.Secret = path, secretFile(t, clusterSecret)
		openPorts(t, c)
		c.Services.Limit = 100
	})
	for _, k := range kinds {
		t.Run(k.kind.String(), func(t *testing.T) {
			require.Equal(t, k.answer, converse(t, s.addr, asMember(t, clusterSecret, k.kind, friend), k.request, len(k.answer)))
			answer := converse(t, s.addr, asMember(t, clusterSecret, k.kind, stranger), k.request, 64)
			require.True(t, isRefused(answer), "%q", answer)
		})
	}
	eventually(t, func() bool { return s.says("connected: expr=" + friend) })
	_, err := member.Dial(t.Context(), s.addr, asMember(t, strings.ToUpper(clusterSecret), frame.MemberData, friend))
	require.Error(t, err)
	eventually(t, func() bool { return s.says("does not know the secret of the cluster") })
}

// A client of another member is not on this machine because its address looks so; and one that is
// behind a member on this machine is.
func TestALoopbackClientOfAnotherMemberIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access")
	accessFile(t, path, "", "allow anyone read,write from=local")
	s := start(t, func(c *server.Config) { c.Access.Path, c.Members.Secret = path, secretFile(t, clusterSecret) })
	k := kinds[0]
	require.Equal(t, k.answer, converse(t, s.addr, asMember(t, clusterSecret, k.kind, "127.0.0.1:99"), k.request, len(k.answer)))
	require.True(t, isRefused(converse(t, s.addr, asMember(t, clusterSecret, k.kind, stranger), k.request, 64)))
}

func TestWhomTheDataPortDoesNotTakeForAMember(t *testing.T) {
	t.Run("no secret, no certificate", func(t *testing.T) {
		s := start(t, nil)
		c := s.dial()
		c.send(string(frame.AppendMemberOpening(nil, frame.MemberOpening{Version: 1, Kind: frame.MemberData})))
		c.requireEOF()
		eventually(t, func() bool { return s.says("was not given the secret of a cluster") })
	})
	t.Run("a client of a member", func(t *testing.T) {
		s := start(t, func(c *server.Config) { c.Members.Secret = secretFile(t, clusterSecret) })
		opening := frame.AppendMemberOpening(nil, frame.MemberOpening{Version: 1, Kind: frame.MemberData})
		require.Empty(t, converse(t, s.addr, asMember(t, clusterSecret, frame.MemberData, friend), string(opening), 1))
	})
	t.Run("reasons", func(t *testing.T) {
		s := start(t, func(c *server.Config) { c.Members.Secret = secretFile(t, clusterSecret) })
		for kind, reason := range map[frame.MemberKind]string{
			frame.MemberLock: "does not serve lock", frame.MemberMemcached: "does not serve memcached",
			frame.MemberCluster: "is in no cluster", 99: "does not serve unknown (99)",
		} {
			_, err := member.Dial(t.Context(), s.addr, asMember(t, clusterSecret, kind, friend))
			require.ErrorContains(t, err, reason)
		}
		o := asMember(t, clusterSecret, frame.MemberData, friend)
		o.Client = nil
		_, err := member.Dial(t.Context(), s.addr, o)
		require.ErrorContains(t, err, "names no client")
		o.Client = &access.Client{Address: "nowhere"}
		_, err = member.Dial(t.Context(), s.addr, o)
		require.Error(t, err)
	})
	t.Run("a server that follows", func(t *testing.T) {
		dir := t.TempDir()
		s := start(t, func(c *server.Config) {
			c.ServerID, c.RTSPath, c.MasterHost, c.MasterPort = 2, filepath.Join(dir, "rts"), "127.0.0.1", freeport.Take(t)
			c.Members.Secret = secretFile(t, clusterSecret)
		})
		_, err := member.Dial(t.Context(), s.addr, asMember(t, clusterSecret, frame.MemberData, friend))
		var refused *member.Refused
		require.ErrorAs(t, err, &refused)
		require.Equal(t, frame.MemberStandby, refused.Status)
		require.Contains(t, refused.Reason, "it follows 127.0.0.1:")
	})
}

// Without a secret a member shows a certificate; where there is an access file, one that may do
// everything.
func TestMembersWithCertificates(t *testing.T) {
	ca := authority(t)
	_, err := ca.Issue(testca.Spec{Name: "member", Client: true})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "access")
	accessFile(t, path, "", "cert all member", "cert some user", "allow all admin db=*", "allow some read,write,replicate db=*",
		"allow anyone read,write db=* from=192.0.2.7")
	k := kinds[0]
	for name, file := range map[string]string{"open": "", "rules": path} {
		t.Run(name, func(t *testing.T) {
			s := start(t, func(c *server.Config) {
				withTLS(c, ca)
				c.TLS.Client, c.Host, c.Access.Path = server.TLSOptional, "127.0.0.1", file
			})
			try := func(cert string) error {
				o := member.Options{Kind: k.kind, Client: &access.Client{Address: friend}, Dial: dialTLS(t, ca, cert)}
				c, err := member.Dial(t.Context(), s.addr, o)
				if err != nil {
					return err
				}
				defer c.Close()
				require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
				_, err = io.WriteString(c, k.request)
				require.NoError(t, err)
				line, err := bufio.NewReader(c).ReadString('\n')
				require.NoError(t, err)
				require.Contains(t, line, k.answer)
				return nil
			}
			require.NoError(t, try("member"))
			require.Error(t, try(""))
			if file == "" {
				require.NoError(t, try("user"))
				return
			}
			require.Error(t, try("user"))
			eventually(t, func() bool { return s.says("certificate with the right admin") })
		})
	}
}

func dialTLS(t *testing.T, ca *testca.CA, cert string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return (&tls.Dialer{Config: trusting(t, ca, cert)}).DialContext
}
