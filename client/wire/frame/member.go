package frame

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The handshake by which one server of a cluster opens a connection to another, on the data port.
// gotycoon's own. The server that connects is the opener, the other one is the acceptor:
//
//	opener                          acceptor
//	MemberOpening        ──────►
//	                     ◄──────    MemberChallenge
//	MemberProof          ──────►
//	                     ◄──────    MemberWelcome
//	… from here on the protocol of the kind, in both directions …
//
//	MemberOpening    B5 | version 1 | kind 1 | nonce 32 | nsiz 1 | name
//	MemberChallenge  B5 | version 1 | method 1 | nonce 32
//	MemberProof      mac 32 | isiz 2 | MemberClient
//	MemberWelcome    B5 | status 1 | mac 32 | rsiz 1 | reason
//	MemberClient     flags 1 | asiz 1 | address | (ssiz 2 | subject) *
//
// A MemberClient is empty, or says for whom the opener has opened the connection. Each mac covers
// all bytes that were sent before it in both directions, and those that follow it in its own
// message; package internal/member computes them. Before the welcome the acceptor answers whatever
// is wrong by closing the connection.
//
// The opener sends nothing behind its proof before it has the welcome. So an acceptor has read
// exactly the handshake when it hands the connection to the protocol of the kind.

// MemberKind is what a connection between servers carries after the handshake.
type MemberKind byte

// The kinds. A server refuses kinds that it does not know.
const (
	MemberData      MemberKind = 1 + iota // HTTP and the binary protocol, as on the data port
	MemberMemcached                       // as on memcached's port
	MemberCounter
	MemberLock
	MemberSequence
	MemberQuota
	MemberCluster // messages of the servers to each other
	MemberReplica // the data port, for a member that follows: its acknowledgements count

	lastMemberKind = MemberReplica
)

// String returns the word for a kind in messages and metrics.
func (k MemberKind) String() string {
	names := [...]string{"data", "memcached", "counter", "lock", "sequence", "quota", "cluster", "replica"}
	if k < MemberData || k > lastMemberKind {
		return fmt.Sprintf("unknown (%d)", byte(k))
	}
	return names[k-MemberData]
}

// MemberMethod is how an opener proves that it is a member.
type MemberMethod byte

// The methods. With a certificate the macs of the handshake are zeros.
const (
	MemberByCertificate MemberMethod = iota // by the client certificate of its TLS connection
	MemberBySecret                          // by the secret of the cluster
)

// MemberStatus is how an acceptor answers an opener that has proved to be a member.
type MemberStatus byte

// The states. All but the first end the connection.
const (
	MemberOpen    MemberStatus = iota
	MemberStandby              // the kind is for clients, and this server is not the primary
	MemberRefused              // the reason says why
	MemberNoSuch               // this server does not serve the kind
)

const (
	// MemberVersion is the version of the handshake.
	MemberVersion = 1

	MemberNonce = 32 // bytes of a nonce
	MemberMAC   = 32 // bytes of a mac

	// MaxMemberClient is the longest MemberClient in bytes. It bounds what an acceptor reads of an
	// opener that has proved nothing yet.
	MaxMemberClient = 8 << 10

	openingHead   = 36
	challengeSize = 35
	proofHead     = 34
	welcomeHead   = 35

	clientSecure = 1 << 0 // flag: the client speaks TLS
)

// MemberOpening begins the handshake.
type MemberOpening struct {
	Version byte
	Kind    MemberKind
	Nonce   [MemberNonce]byte
	Name    string // of the opener, for logs; at most 255 bytes
}

// AppendMemberOpening appends o to dst.
func AppendMemberOpening(dst []byte, o MemberOpening) []byte {
	dst = append(dst, byte(Member), o.Version, byte(o.Kind))
	dst = append(dst, o.Nonce[:]...)
	name := o.Name[:min(len(o.Name), math.MaxUint8)]
	return append(append(dst, byte(len(name))), name...)
}

// DecodeMemberOpening reads a MemberOpening from p.
func DecodeMemberOpening(p []byte) (o MemberOpening, n int, err error) {
	if len(p) > 0 && Magic(p[0]) != Member {
		return o, 0, ErrMagic
	}
	if len(p) < openingHead {
		return o, openingHead, ErrShort
	}
	if n = openingHead + int(p[openingHead-1]); len(p) < n {
		return o, n, ErrShort
	}
	o = MemberOpening{Version: p[1], Kind: MemberKind(p[2]), Name: string(p[openingHead:n])}
	copy(o.Nonce[:], p[3:])
	return o, n, nil
}

// MemberChallenge is the answer to an opening.
type MemberChallenge struct {
	Version byte // that the acceptor speaks: at most that of the opening
	Method  MemberMethod
	Nonce   [MemberNonce]byte
}

// AppendMemberChallenge appends c to dst.
func AppendMemberChallenge(dst []byte, c MemberChallenge) []byte {
	return append(append(dst, byte(Member), c.Version, byte(c.Method)), c.Nonce[:]...)
}

// DecodeMemberChallenge reads a MemberChallenge from p.
func DecodeMemberChallenge(p []byte) (c MemberChallenge, n int, err error) {
	if len(p) > 0 && Magic(p[0]) != Member {
		return c, 0, ErrMagic
	}
	if len(p) < challengeSize {
		return c, challengeSize, ErrShort
	}
	c = MemberChallenge{Version: p[1], Method: MemberMethod(p[2])}
	copy(c.Nonce[:], p[3:])
	return c, challengeSize, nil
}

// MemberProof is the opener's answer to a challenge.
type MemberProof struct {
	MAC    [MemberMAC]byte
	Client []byte // an encoded MemberClient, or nothing
}

// AppendMemberProof appends p to dst.
func AppendMemberProof(dst []byte, p MemberProof) []byte {
	dst = append(dst, p.MAC[:]...)
	return append(binary.BigEndian.AppendUint16(dst, uint16(len(p.Client))), p.Client...)
}

// DecodeMemberProof reads a MemberProof from p.
func DecodeMemberProof(p []byte) (m MemberProof, n int, err error) {
	if len(p) < proofHead {
		return m, proofHead, ErrShort
	}
	size := int(binary.BigEndian.Uint16(p[MemberMAC:]))
	if size > MaxMemberClient {
		return m, 0, ErrTooLarge
	}
	if n = proofHead + size; len(p) < n {
		return m, n, ErrShort
	}
	copy(m.MAC[:], p)
	m.Client = p[proofHead:n:n]
	return m, n, nil
}

// MemberWelcome ends the handshake.
type MemberWelcome struct {
	Status MemberStatus
	MAC    [MemberMAC]byte
	Reason string // for people; at most 255 bytes are sent
}

// AppendMemberWelcome appends w to dst.
func AppendMemberWelcome(dst []byte, w MemberWelcome) []byte {
	reason := w.Reason[:min(len(w.Reason), math.MaxUint8)]
	dst = append(append(dst, byte(Member), byte(w.Status)), w.MAC[:]...)
	return append(append(dst, byte(len(reason))), reason...)
}

// DecodeMemberWelcome reads a MemberWelcome from p.
func DecodeMemberWelcome(p []byte) (w MemberWelcome, n int, err error) {
	if len(p) > 0 && Magic(p[0]) != Member {
		return w, 0, ErrMagic
	}
	if len(p) < welcomeHead {
		return w, welcomeHead, ErrShort
	}
	if n = welcomeHead + int(p[welcomeHead-1]); len(p) < n {
		return w, n, ErrShort
	}
	w = MemberWelcome{Status: MemberStatus(p[1]), Reason: string(p[welcomeHead:n])}
	copy(w.MAC[:], p[2:])
	return w, n, nil
}

// MemberClient is the client for whom an opener has opened a connection.
type MemberClient struct {
	Address  string   // IP:PORT
	Secure   bool     // it speaks TLS
	Subjects []string // in its verified certificate
}

// AppendMemberClient appends c to dst. It fails if c is too large to be sent.
func AppendMemberClient(dst []byte, c MemberClient) ([]byte, error) {
	const head = 2 // of a subject
	flags := byte(0)
	if c.Secure {
		flags |= clientSecure
	}
	if len(c.Address) > math.MaxUint8 {
		return nil, ErrTooLarge
	}
	begin := len(dst)
	dst = append(append(dst, flags, byte(len(c.Address))), c.Address...)
	for _, subject := range c.Subjects {
		if len(dst)-begin+head+len(subject) > MaxMemberClient {
			return nil, ErrTooLarge
		}
		dst = append(binary.BigEndian.AppendUint16(dst, uint16(len(subject))), subject...)
	}
	return dst, nil
}

// DecodeMemberClient reads a MemberClient, which is all of p.
func DecodeMemberClient(p []byte) (c MemberClient, err error) {
	const head = 2
	if len(p) < head || len(p) < head+int(p[1]) {
		return c, ErrShort
	}
	c.Secure = p[0]&clientSecure != 0
	c.Address, p = string(p[head:head+int(p[1])]), p[head+int(p[1]):]
	for len(p) > 0 {
		if len(p) < head || len(p) < head+int(binary.BigEndian.Uint16(p)) {
			return c, ErrShort
		}
		end := head + int(binary.BigEndian.Uint16(p))
		c.Subjects, p = append(c.Subjects, string(p[head:end])), p[end:]
	}
	return c, nil
}
