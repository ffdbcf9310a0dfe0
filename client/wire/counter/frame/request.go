package frame

import "encoding/binary"

// Numbers of bytes before the name.
const (
	getHead     = 2
	acquireHead = 10
	releaseHead = 6
)

// Args are the arguments of Get, Acquire and Release. Each uses those that its layout shows.
type Args struct {
	Resources uint32
	Maximum   uint32
	Name      []byte
}

// DecodeGet reads the body of a Get request. ok is false when the arguments are invalid.
func DecodeGet(body []byte) (a Args, ok bool) {
	a.Name, ok = decodeName(body, getHead)
	return a, ok
}

// DecodeAcquire reads the body of an Acquire request. ok is false when the arguments are invalid.
func DecodeAcquire(body []byte) (a Args, ok bool) {
	if len(body) < acquireHead {
		return Args{}, false
	}
	a.Resources, a.Maximum = binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[4:])
	a.Name, ok = decodeName(body, acquireHead)
	return a, ok && a.Resources > 0 && a.Resources <= a.Maximum
}

// DecodeRelease reads the body of a Release request. ok is false when the arguments are invalid.
func DecodeRelease(body []byte) (a Args, ok bool) {
	if len(body) < releaseHead {
		return Args{}, false
	}
	a.Resources = binary.BigEndian.Uint32(body)
	a.Name, ok = decodeName(body, releaseHead)
	return a, ok
}

// decodeName reads a name. The last two of the first head bytes of the body are its length.
func decodeName(body []byte, head int) ([]byte, bool) {
	if len(body) < head {
		return nil, false
	}
	end := head + int(binary.BigEndian.Uint16(body[head-2:]))
	if end == head || end > len(body) {
		return nil, false
	}
	return body[head:end:end], true
}

// AppendRequest appends a request. a.Name must not be longer than MaxName.
func AppendRequest(dst []byte, op Opcode, opaque uint32, a Args) []byte {
	h := Header{Magic: RequestMagic, Op: op, Opaque: opaque}
	switch op {
	case Get:
		h.Size = uint32(getHead + len(a.Name))
		dst = AppendHeader(dst, h)
	case Acquire:
		h.Size = uint32(acquireHead + len(a.Name))
		dst = AppendHeader(dst, h)
		dst = binary.BigEndian.AppendUint32(dst, a.Resources)
		dst = binary.BigEndian.AppendUint32(dst, a.Maximum)
	case Release:
		h.Size = uint32(releaseHead + len(a.Name))
		dst = AppendHeader(dst, h)
		dst = binary.BigEndian.AppendUint32(dst, a.Resources)
	default:
		return AppendHeader(dst, h)
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(a.Name)))
	return append(dst, a.Name...)
}
