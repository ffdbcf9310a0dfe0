package frame

import "encoding/binary"

// Follow is the replication request. The server answers with the byte Replication and then sends
// messages until the connection ends, or with Error.
//
//	magic 1 | flags 4 | ts 8 | sid 2
type Follow struct {
	Flags uint32
	TS    uint64 // time stamp of the last update that the follower has
	SID   uint16 // server ID of the follower; with WhiteSID of the server whose updates it wants
}

// FollowLen is the length of a Follow in bytes.
const FollowLen = 15

// AppendFollow appends f to dst.
func AppendFollow(dst []byte, f Follow) []byte {
	dst = append(dst, byte(Replication))
	dst = binary.BigEndian.AppendUint32(dst, f.Flags)
	dst = binary.BigEndian.AppendUint64(dst, f.TS)
	return binary.BigEndian.AppendUint16(dst, f.SID)
}

// DecodeFollow reads a Follow from p.
func DecodeFollow(p []byte) (f Follow, n int, err error) {
	if len(p) > 0 && Magic(p[0]) != Replication {
		return Follow{}, 0, ErrMagic
	}
	if len(p) < FollowLen {
		return Follow{}, FollowLen, ErrShort
	}
	return Follow{
		Flags: binary.BigEndian.Uint32(p[1:]),
		TS:    binary.BigEndian.Uint64(p[5:]),
		SID:   binary.BigEndian.Uint16(p[13:]),
	}, FollowLen, nil
}

// Message is one message of a replication stream.
//
//	update       B1 1 | ts 8 | size 4 | log message
//	filler       B1 1 | ts 8 | 0 4                     no update up to ts is for the follower
//	heartbeat    B0 1 | ts 8                           all updates up to ts were sent; Ack follows
//
// An Extended stream has further kinds: Hello, Origin and Behind.
type Message struct {
	Magic Magic  // Replication or Heartbeat
	TS    uint64 // time stamp of the update, or stamp up to which everything was sent
	Log   []byte // message of the update log; empty in a filler and a heartbeat
}

const (
	heartbeatLen = 9
	messageHead  = 13
)

// AppendMessage appends m to dst.
func AppendMessage(dst []byte, m Message) []byte {
	if m.Magic == Heartbeat {
		return binary.BigEndian.AppendUint64(append(dst, byte(m.Magic)), m.TS)
	}
	return append(AppendMessageHead(dst, m), m.Log...)
}

// AppendMessageHead appends what is in front of m.Log in the message of an update.
func AppendMessageHead(dst []byte, m Message) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, byte(m.Magic)), m.TS)
	return binary.BigEndian.AppendUint32(dst, uint32(len(m.Log)))
}

// DecodeMessage reads a Message from p.
func DecodeMessage(p []byte) (m Message, n int, err error) {
	if len(p) < heartbeatLen {
		if len(p) > 0 && Magic(p[0]) != Heartbeat && Magic(p[0]) != Replication {
			return Message{}, 0, ErrMagic
		}
		return Message{}, heartbeatLen, ErrShort
	}
	m = Message{Magic: Magic(p[0]), TS: binary.BigEndian.Uint64(p[1:])}
	switch m.Magic {
	case Heartbeat:
		return m, heartbeatLen, nil
	case Replication:
		return decodeUpdate(p, m)
	}
	return Message{}, 0, ErrMagic
}

// decodeUpdate completes m, whose magic and time stamp are decoded.
func decodeUpdate(p []byte, m Message) (Message, int, error) {
	if len(p) < messageHead {
		return Message{}, messageHead, ErrShort
	}
	size := binary.BigEndian.Uint32(p[heartbeatLen:])
	if size > MaxMessage {
		return Message{}, 0, ErrTooLarge
	}
	n := messageHead + int(size)
	if len(p) < n {
		return Message{}, n, ErrShort
	}
	m.Log = p[messageHead:n:n]
	return m, n, nil
}
