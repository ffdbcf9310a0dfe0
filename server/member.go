package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"gotycoon/access"
	"gotycoon/client/wire/frame"
	"gotycoon/internal/member"
	"gotycoon/internal/netio"
	"gotycoon/internal/tlsport"
)

// MemberConfig is how the servers of a cluster know each other.
type MemberConfig struct {
	// Secret is the file of the cluster's secret (-cluster-secret). Empty: members show client
	// certificates, and a server without TLS knows no members.
	Secret string
}

// check finds what is wrong with the file.
func (c *MemberConfig) check() error {
	if c.Secret == "" {
		return nil
	}
	_, err := member.ReadSecrets(c.Secret, nil)
	return err
}

// members are the connections between this server and others of its cluster. Connections of members
// come in by the data port (see conn.serveMember) and are handed on by their kind.
type members struct {
	secrets  *member.Secrets // nil: members show certificates
	acceptor member.Acceptor
	guard    *access.Guard
	name     string // of this server, for the logs of others
	connect  func(ctx context.Context, network, addr string) (net.Conn, error)
	// expires returns when the certificate ends that masters and members are shown; nil: no TLS
	expires func() (at time.Time, has bool)

	// The fields below are set before the data port opens.

	// standby says why this server must not serve clients of other members; empty: it may.
	standby func() string
	// ports take the connections of clients, by the word for their kind, and report whether they
	// could.
	ports map[string]func(net.Conn) bool
	// cluster takes connections of members for themselves; they belong to it from then on. name is
	// what the member calls itself. nil: this server is in no cluster.
	cluster func(name string, c net.Conn)
	// ours is the name of the cluster. Members call themselves by it: CLUSTER/MEMBER.
	ours string
}

// openMembers reads the secret.
func openMembers(c MemberConfig, secure *TLSConfig, port int, guard *access.Guard, log logger) (*members, error) {
	m := &members{guard: guard, ports: map[string]func(net.Conn) bool{}}
	var err error
	if c.Secret != "" {
		if m.secrets, err = member.ReadSecrets(c.Secret, log.Logger); err != nil {
			return nil, err
		}
	}
	dialer, err := newMasterDialer(secure, log)
	if err != nil {
		return nil, err
	}
	if dialer != nil {
		m.connect, m.expires = dialer.dial, dialer.files.Expires
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	m.name = net.JoinHostPort(host, strconv.Itoa(port))
	m.standby = func() string { return "" }
	m.acceptor = member.Acceptor{Secrets: m.secrets, Guard: guard, Logger: log.Logger, Serves: m.serves}
	return m, nil
}

// dial opens a connection to the data port of another member. client is for whom, nil for this
// server itself.
func (m *members) dial(ctx context.Context, addr string, kind frame.MemberKind, client *access.Client) (net.Conn, error) {
	return member.Dial(ctx, addr, member.Options{Secrets: m.secrets, Kind: kind, Name: m.name, Client: client, Dial: m.connect})
}

// serves implements member.Acceptor.Serves.
func (m *members) serves(r member.Request) *member.Refused {
	if r.Kind == frame.MemberCluster || r.Kind == frame.MemberReplica {
		if m.cluster == nil {
			return &member.Refused{Status: frame.MemberNoSuch, Reason: "this server is in no cluster"}
		}
		if theirs, _, named := strings.Cut(r.Name, "/"); !named || theirs != m.ours {
			return &member.Refused{Status: frame.MemberRefused, Reason: fmt.Sprintf("that server is in the cluster %q, and the server that asks is in %q (-cluster)", m.ours, theirs)}
		}
		return nil
	}
	switch _, known := m.ports[r.Kind.String()]; {
	case r.Client == nil:
		return &member.Refused{Status: frame.MemberRefused, Reason: "the connection names no client"}
	case !known && r.Kind != frame.MemberData:
		return &member.Refused{Status: frame.MemberNoSuch, Reason: fmt.Sprintf("this server does not serve %s", r.Kind)}
	}
	if reason := m.standby(); reason != "" {
		return &member.Refused{Status: frame.MemberStandby, Reason: reason}
	}
	return nil
}

// certificate returns nil if a connection shows the certificate of a member: one that may do
// everything, since a member can speak for anybody.
func (m *members) certificate(c net.Conn) error {
	if _, ok := tlsport.PeerOf(c); !ok {
		return member.ErrNoCluster
	}
	if err := m.guard.Visit(c).Server(access.Admin); err != nil {
		return fmt.Errorf("without a cluster secret, members show a certificate with the right admin: %w", err)
	}
	return nil
}

// errMemberClient is the error of a client of another member that claims to be a member itself.
var errMemberClient = errors.New("clients of members are no members")

// admit does the handshake of another member, whose first byte has come on c.
func (m *members) admit(in *netio.Conn, c net.Conn) (member.Request, error) {
	if _, again := c.(access.Forwarded); again {
		return member.Request{}, errMemberClient
	}
	return m.acceptor.Accept(in, c.RemoteAddr(), func() error { return m.certificate(c) })
}

// hand gives an admitted connection to a port of clients, or to the cluster, and reports whether it
// has a new owner.
func (m *members) hand(r member.Request, c net.Conn) bool {
	if r.Kind == frame.MemberCluster {
		_, name, _ := strings.Cut(r.Name, "/")
		m.cluster(name, c)
		return true
	}
	return m.ports[r.Kind.String()](member.Behalf(c, *r.Client))
}
