package frame

import (
	"encoding/binary"
	"errors"
)

// ErrReply: the body of a reply does not have the layout of the protocol.
var ErrReply = errors.New("malformed reply of the counter server")

// AppendReply appends a reply without a body for OK, and with the text of any other status.
func AppendReply(dst []byte, op Opcode, opaque uint32, s Status) []byte {
	text := s.String()
	dst = AppendHeader(dst, Header{Magic: ReplyMagic, Op: op, Status: s, Size: uint32(len(text)), Opaque: opaque})
	return append(dst, text...)
}

// AppendRefusal appends a reply with the status Denied and a reason.
func AppendRefusal(dst []byte, op Opcode, opaque uint32, reason string) []byte {
	dst = AppendHeader(dst, Header{Magic: ReplyMagic, Op: op, Status: Denied, Size: uint32(len(reason)), Opaque: opaque})
	return append(dst, reason...)
}

// AppendNumber appends the reply to Get and to Acquire.
func AppendNumber(dst []byte, op Opcode, opaque, n uint32) []byte {
	dst = AppendHeader(dst, Header{Magic: ReplyMagic, Op: op, Size: 4, Opaque: opaque})
	return binary.BigEndian.AppendUint32(dst, n)
}

// DecodeNumber reads the body of the reply to Get or Acquire.
func DecodeNumber(body []byte) (uint32, error) {
	if len(body) < 4 {
		return 0, ErrReply
	}
	return binary.BigEndian.Uint32(body), nil
}

// Stat is one item of the statistics.
//
//	name length 2 | value length 2 | name | value
type Stat struct{ Name, Value string }

const statHead = 4

// AppendStats appends the reply to Stats. Names and values must be shorter than 64 KiB.
func AppendStats(dst []byte, opaque uint32, stats []Stat) []byte {
	size := 0
	for _, s := range stats {
		size += statHead + len(s.Name) + len(s.Value)
	}
	dst = AppendHeader(dst, Header{Magic: ReplyMagic, Op: Stats, Size: uint32(size), Opaque: opaque})
	for _, s := range stats {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(s.Name)))
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(s.Value)))
		dst = append(append(dst, s.Name...), s.Value...)
	}
	return dst
}

// DecodeStats reads the body of the reply to Stats.
func DecodeStats(body []byte) ([]Stat, error) {
	var stats []Stat
	for len(body) > 0 {
		if len(body) < statHead {
			return nil, ErrReply
		}
		name := statHead + int(binary.BigEndian.Uint16(body))
		end := name + int(binary.BigEndian.Uint16(body[2:]))
		if len(body) < end {
			return nil, ErrReply
		}
		stats = append(stats, Stat{Name: string(body[statHead:name]), Value: string(body[name:end])})
		body = body[end:]
	}
	return stats, nil
}

// Entry is one counter in the replies to Dump.
//
//	current consumption 4 | maximum consumption 4 | name length 2 | name
type Entry struct {
	Current uint32
	Maximum uint32 // in the present interval
	Name    []byte
}

const entryHead = 10

// AppendEntry appends one reply to Dump. AppendReply makes the last reply.
func AppendEntry(dst []byte, opaque, current, maximum uint32, name string) []byte {
	dst = AppendHeader(dst, Header{Magic: ReplyMagic, Op: Dump, Size: uint32(entryHead + len(name)), Opaque: opaque})
	dst = binary.BigEndian.AppendUint32(dst, current)
	dst = binary.BigEndian.AppendUint32(dst, maximum)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(name)))
	return append(dst, name...)
}

// DecodeEntry reads the body of a reply to Dump, but not of the last one.
func DecodeEntry(body []byte) (Entry, error) {
	if len(body) < entryHead {
		return Entry{}, ErrReply
	}
	name, ok := decodeName(body, entryHead)
	if !ok {
		return Entry{}, ErrReply
	}
	return Entry{Current: binary.BigEndian.Uint32(body), Maximum: binary.BigEndian.Uint32(body[4:]), Name: name}, nil
}
