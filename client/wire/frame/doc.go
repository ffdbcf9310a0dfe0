// Package frame is the byte layout of the binary protocol, in both directions.
//
// All numbers are big-endian. A request begins with a magic byte. The reply begins with the same
// byte, or is the single byte Error:
//
//	magic              request                        reply
//	B8 set_bulk        Header, Record * rnum          Reply
//	B9 remove_bulk     Header, Key * rnum             Reply
//	BA get_bulk        Header, Key * rnum             Reply, Record * rnum
//	B4 play_script     Script, Pair * rnum            Reply, Pair * rnum
//	B1 replication     Follow                         Replication, then Message for ever
//	B6 copy            CopyRequest                    CopyHeader, CopyPart * n
//	B5 member          MemberOpening, MemberProof     MemberChallenge, MemberWelcome
//
// Append functions append one part to a buffer. Decode functions read one part from the beginning
// of p and return its length n. If p ends too early, they return ErrShort, and n is the number of
// bytes that p must have before another try can succeed. Any other error means that p can never be
// decoded. Decoded keys and values are slices of p.
package frame

import "errors"

// Magic is the first byte of a message.
type Magic byte

// The messages.
const (
	Heartbeat   Magic = 0xB0 // stream: all updates are sent; the follower answers with Ack
	Replication Magic = 0xB1 // request, and beginning of the stream; stream: an update
	PlayScript  Magic = 0xB4
	Member      Magic = 0xB5 // gotycoon's own: another server of the cluster connects
	Copy        Magic = 0xB6 // gotycoon's own: a database as it is at an instant
	SetBulk     Magic = 0xB8
	RemoveBulk  Magic = 0xB9
	GetBulk     Magic = 0xBA
	Error       Magic = 0xBF // reply: the request has failed; nothing follows

	Ack = Replication // the follower's answer to a heartbeat
)

// String returns the protocol's word for a request, "unknown" for other bytes.
func (m Magic) String() string {
	switch m {
	case Replication:
		return "replication"
	case PlayScript:
		return "play_script"
	case Member:
		return "member"
	case Copy:
		return "copy"
	case SetBulk:
		return "set_bulk"
	case RemoveBulk:
		return "remove_bulk"
	case GetBulk:
		return "get_bulk"
	}
	return "unknown"
}

const (
	// NoReply in the flags of set_bulk, remove_bulk and play_script asks for no reply, not even
	// Error.
	NoReply uint32 = 1 << 0

	// The bits of Replicas in the flags of set_bulk, remove_bulk, get_bulk and play_script are a
	// number of followers. The reply leaves when so many of them have what it tells.
	Replicas      uint32 = 0xf << replicasShift
	replicasShift        = 24

	// WhiteSID in the flags of Follow asks for the updates of the server SID only, instead of all
	// updates but those.
	WhiteSID uint32 = 1 << 0

	// MaxSize is the longest key, value or procedure name in bytes.
	MaxSize = 1 << 28

	// MaxMessage is the longest update in a stream in bytes. The protocol has no limit; this limit
	// leaves room for the longest key and the longest value of a server.
	MaxMessage = 3 << 29
)

// ReplicasOf returns the number in the bits of Replicas. Flags with any other bit but NoReply are
// of a client that does not know these bits, and ask for nothing.
func ReplicasOf(flags uint32) int {
	if flags&^(Replicas|NoReply) != 0 {
		return 0
	}
	return int(flags & Replicas >> replicasShift)
}

// WithReplicas returns flags that ask for n followers, 0 to 15.
func WithReplicas(flags uint32, n int) uint32 {
	return flags&^Replicas | uint32(n)<<replicasShift&Replicas
}

var (
	// ErrShort: the bytes end before the part is complete.
	ErrShort = errors.New("incomplete message")

	// ErrTooLarge: a size is above MaxSize or MaxMessage.
	ErrTooLarge = errors.New("size in message is over the limit")

	// ErrMagic: the message begins with a byte that cannot begin it.
	ErrMagic = errors.New("unexpected magic byte in message")

	// ErrRefused: the reply is Error.
	ErrRefused = errors.New("the server refused the request")
)

// sections finds the two parts that follow the head of a message: the first part ends at middle,
// the second part, which may be empty, at end. first and second are their lengths, of most bytes
// each at the most. If p is shorter, the error is ErrShort.
func sections(p []byte, head int, first, second, most uint32) (middle, end int, err error) {
	if first > most || second > most {
		return 0, 0, ErrTooLarge
	}
	middle = head + int(first)
	end = middle + int(second)
	if len(p) < end {
		return 0, end, ErrShort
	}
	return middle, end, nil
}
