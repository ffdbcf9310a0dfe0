package relay

import (
	"encoding/binary"
	"strings"
)

// A message is items behind each other:
//
//	message  "relay1" item…
//	item     kind (1 byte), server (8), number (8), then
//	         kinds "a", "o": length of the name (uvarint), name
//	         kind "t":       the server that has taken the signal (8)
//
// Numbers have the most significant byte first. server and number name a signal: who has sent it,
// and which of its signals it is. "a" wakes all who wait, "o" one of them.
const (
	magic = "relay1"

	kindAll   byte = 'a'
	kindOne   byte = 'o'
	kindTaken byte = 't'
)

// mostBytes is where a message ends, behind the item that has crossed it. An item has at most some
// bytes more than LongestName, so that the whole is less than engine.LongestSignal.
const mostBytes = 2000

// LongestName is the longest name of a signal that messages have room for.
const LongestName = 1000

// signal names a signal.
type signal struct{ server, number uint64 }

type item struct {
	kind   byte
	signal signal
	name   string // but of kindTaken
	by     uint64 // of kindTaken
}

func (it *item) append(to []byte) []byte {
	to = append(to, it.kind)
	to = binary.BigEndian.AppendUint64(to, it.signal.server)
	to = binary.BigEndian.AppendUint64(to, it.signal.number)
	if it.kind == kindTaken {
		return binary.BigEndian.AppendUint64(to, it.by)
	}
	to = binary.AppendUvarint(to, uint64(len(it.name)))
	return append(to, it.name...)
}

// decode returns the items of a message. ok is false if it is none.
func decode(message string) (items []item, ok bool) {
	text, ours := strings.CutPrefix(message, magic)
	if !ours {
		return nil, false
	}
	rest := []byte(text)
	for len(rest) > 0 {
		if len(rest) < 17 {
			return nil, false
		}
		it := item{kind: rest[0], signal: signal{binary.BigEndian.Uint64(rest[1:]), binary.BigEndian.Uint64(rest[9:])}}
		rest = rest[17:]
		switch it.kind {
		case kindTaken:
			if len(rest) < 8 {
				return nil, false
			}
			it.by, rest = binary.BigEndian.Uint64(rest), rest[8:]
		case kindAll, kindOne:
			size, n := binary.Uvarint(rest)
			if n <= 0 || size > uint64(len(rest)-n) {
				return nil, false
			}
			it.name, rest = string(rest[n:n+int(size)]), rest[n+int(size):]
		default:
			return nil, false
		}
		items = append(items, it)
	}
	return items, true
}
