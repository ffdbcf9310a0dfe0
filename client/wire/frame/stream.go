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
	_, n, err := sections(p, messageHead, binary.BigEndian.Uint32(p[heartbeatLen:]), 0, MaxMessage)
	if err != nil {
		return Message{}, n, err
	}
	m.Log = p[messageHead:n:n]
	return m, n, nil
}

// Extended in the flags of Follow asks for a stream with messages of gotycoon's own. A gotycoon
// server then sends a Hello as the first message after its answer. Other servers ignore the flag
// and send their usual stream, without a Hello.
const Extended uint32 = 1 << 31

// Remaining in the flags of Follow says that the follower wants what is left of the log, and that
// it asks by ulog_reach whether updates are missing. Without the flag, a slave that asks for
// removed updates is refused. Other servers ignore the flag.
const Remaining uint32 = 1 << 30

// Extended reports whether the follower asks for an extended stream. The flag together with any
// other flag but WhiteSID does not.
func (f Follow) Extended() bool { return f.Flags&^WhiteSID == Extended }

// The messages of an extended stream look like updates of a database that does not exist:
//
//	sid 2 | ff ff | op 1 | version 1 | ...
//
// The time stamp of the stream message around them is 0.
const (
	extendedDBID    = 0xFFFF
	extendedVersion = 1
	extendedHead    = 6

	opOrigin = 0xA1
	opHello  = 0xA2
	opBehind = 0xA3
)

// Hello is the first message of an extended stream.
//
//	sid 2 | ff ff | a2 | version 1 | flags 4 | log 16 | first 8 | last 8 | databases 2
//	[term 8]
//	[master 8 | position 8 | marks 2 | (log 8 | stamp 8) for each mark]
//
// Flags say whether the second line is there, the term, and the third, the past. Earlier versions
// neither send nor read them.
type Hello struct {
	SID       uint16   // server ID of the master
	Gap       bool     // updates after the requested stamp have been removed from the log
	Log       [16]byte // identity of the master's log
	First     uint64   // the log has every update after this stamp; 0: every update
	Last      uint64   // newest stamp in the log
	Databases uint16   // number of the master's databases
	Services  bool     // the master has a services' database besides
	Newest    bool     // the master knows CopyNewest
	Term      uint64   // of which the master is the primary; 0: it is in no cluster, or no primary
	Past      *Past    // what the master has received from others; nil: it does not tell
}

// Past is what a server has received as a follower.
type Past struct {
	Master   uint64 // beginning of the identity of the log that it followed last; 0: none
	Position uint64 // it has everything of that log up to this stamp
	Marks    []Mark
}

// Mark says that a server has every update which was made with a log, up to a stamp.
type Mark struct {
	Log   uint64 // beginning of the identity of the log
	Stamp uint64
}

const (
	helloLen = extendedHead + 4 + 16 + 8 + 8 + 2

	helloGap      = 1 << 0
	helloServices = 1 << 1
	helloNewest   = 1 << 2
	helloPast     = 1 << 3
	helloTerm     = 1 << 4

	pastLen = 8 + 8 + 2
	markLen = 8 + 8
)

// AppendHello appends h, as a message of a stream, to dst.
func AppendHello(dst []byte, h Hello) []byte {
	size, flags := helloLen, uint32(0)
	if h.Term != 0 {
		size += 8
		flags |= helloTerm
	}
	if h.Past != nil {
		size += pastLen + markLen*len(h.Past.Marks)
		flags |= helloPast
	}
	dst = appendExtended(dst, h.SID, opHello, size)
	if h.Gap {
		flags |= helloGap
	}
	if h.Services {
		flags |= helloServices
	}
	if h.Newest {
		flags |= helloNewest
	}
	dst = binary.BigEndian.AppendUint32(dst, flags)
	dst = append(dst, h.Log[:]...)
	dst = binary.BigEndian.AppendUint64(dst, h.First)
	dst = binary.BigEndian.AppendUint64(dst, h.Last)
	dst = binary.BigEndian.AppendUint16(dst, h.Databases)
	if h.Term != 0 {
		dst = binary.BigEndian.AppendUint64(dst, h.Term)
	}
	if p := h.Past; p != nil {
		dst = binary.BigEndian.AppendUint64(dst, p.Master)
		dst = binary.BigEndian.AppendUint64(dst, p.Position)
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(p.Marks)))
		for _, m := range p.Marks {
			dst = binary.BigEndian.AppendUint64(dst, m.Log)
			dst = binary.BigEndian.AppendUint64(dst, m.Stamp)
		}
	}
	return dst
}

// Hello decodes the message; ok is false for other messages. Later versions may be longer.
func (m Message) Hello() (h Hello, ok bool) {
	b, ok := m.extended(opHello, helloLen)
	if !ok {
		return h, false
	}
	h.SID = binary.BigEndian.Uint16(m.Log)
	flags := binary.BigEndian.Uint32(b)
	h.Gap, h.Services, h.Newest = flags&helloGap != 0, flags&helloServices != 0, flags&helloNewest != 0
	h.Log = [16]byte(b[4:20])
	h.First, h.Last = binary.BigEndian.Uint64(b[20:]), binary.BigEndian.Uint64(b[28:])
	h.Databases = binary.BigEndian.Uint16(b[36:])
	b = b[helloLen-extendedHead:]
	if flags&helloTerm != 0 && len(b) >= 8 {
		h.Term, b = binary.BigEndian.Uint64(b), b[8:]
	}
	if flags&helloPast != 0 {
		h.Past = decodePast(b)
	}
	return h, true
}

// decodePast returns nil for a past that is cut off.
func decodePast(b []byte) *Past {
	if len(b) < pastLen {
		return nil
	}
	p := &Past{Master: binary.BigEndian.Uint64(b), Position: binary.BigEndian.Uint64(b[8:])}
	n := int(binary.BigEndian.Uint16(b[16:]))
	if b = b[pastLen:]; len(b) < n*markLen {
		return nil
	}
	for ; n > 0; n-- {
		p.Marks = append(p.Marks, Mark{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])})
		b = b[markLen:]
	}
	return p
}

// Origin says where the update in the next message was made, if not on the master.
//
//	00 00 | ff ff | a1 | version 1 | log 8 | stamp 8
type Origin struct {
	Log   uint64 // beginning of the identity of that server's log
	Stamp uint64 // time stamp of the update in that log
}

const originLen = extendedHead + 8 + 8

// OriginSize is how many bytes AppendOrigin appends.
const OriginSize = messageHead + originLen

// AppendOrigin appends o, as a message of a stream, to dst.
func AppendOrigin(dst []byte, o Origin) []byte {
	dst = appendExtended(dst, 0, opOrigin, originLen)
	dst = binary.BigEndian.AppendUint64(dst, o.Log)
	return binary.BigEndian.AppendUint64(dst, o.Stamp)
}

// Origin decodes the message; ok is false for other messages.
func (m Message) Origin() (o Origin, ok bool) {
	b, ok := m.extended(opOrigin, originLen)
	if !ok {
		return o, false
	}
	return Origin{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, true
}

const behindLen = extendedHead + 8

// AppendBehind appends, as a message of a stream, the number of updates that are still to be sent.
//
//	00 00 | ff ff | a3 | version 1 | updates 8
func AppendBehind(dst []byte, updates uint64) []byte {
	return binary.BigEndian.AppendUint64(appendExtended(dst, 0, opBehind, behindLen), updates)
}

// Behind decodes the message; ok is false for other messages.
func (m Message) Behind() (updates uint64, ok bool) {
	b, ok := m.extended(opBehind, behindLen)
	if !ok {
		return 0, false
	}
	return binary.BigEndian.Uint64(b), true
}

// IsExtended reports whether the message belongs to an extended stream, whatever its kind and
// version: a follower ignores the kinds and versions that it does not know.
func (m Message) IsExtended() bool {
	return len(m.Log) >= extendedHead && binary.BigEndian.Uint16(m.Log[2:]) == extendedDBID
}

func (m Message) extended(op byte, size int) ([]byte, bool) {
	if !m.IsExtended() || m.Log[4] != op || m.Log[5] != extendedVersion || len(m.Log) < size {
		return nil, false
	}
	return m.Log[extendedHead:], true
}

func appendExtended(dst []byte, sid uint16, op byte, size int) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, byte(Replication)), 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(size))
	dst = binary.BigEndian.AppendUint16(dst, sid)
	dst = binary.BigEndian.AppendUint16(dst, extendedDBID)
	return append(dst, op, extendedVersion)
}
