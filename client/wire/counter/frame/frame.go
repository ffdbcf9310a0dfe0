// Package frame is the byte layout of the counter protocol, in both directions.
//
// All numbers are big-endian. A request is a Header and a body of Header.Size bytes, and so is each
// of its replies:
//
//	opcode   body of the request                              body of the reply without an error
//	Noop     none                                             none
//	Get      name length 2 | name                             consumption 4
//	Acquire  resources 4 | maximum 4 | name length 2 | name   resources 4
//	Release  resources 4 | name length 2 | name               none
//	Stats    none                                             any number of Stat
//	Dump     none                                             Entry; none in the last of many
//
// A body where the table says none is ignored, and so are bytes behind the name. The body of a
// reply with an error is the text of its Status. Names are 1 to 65535 arbitrary bytes.
//
// Append functions append one part to a buffer. Decoded names are slices of the decoded bytes.
package frame

import "encoding/binary"

const (
	// RequestMagic is the first byte of a request.
	RequestMagic byte = 0x90

	// ReplyMagic is the first byte of a reply.
	ReplyMagic byte = 0x91

	// HeaderLen is the length of a Header in bytes.
	HeaderLen = 12

	// MaxName is the length of the longest name in bytes.
	MaxName = 1<<16 - 1

	// MaxBody is the length of the longest body in bytes of which something is used: a request to
	// acquire.
	MaxBody = acquireHead + MaxName
)

// Opcode is what a request asks for.
type Opcode byte

// The opcodes.
const (
	Noop    Opcode = 0x00
	Get     Opcode = 0x01
	Acquire Opcode = 0x02
	Release Opcode = 0x03
	Stats   Opcode = 0x10
	Dump    Opcode = 0x11

	Unknown Opcode = 0x12 // in the reply to a request with any other opcode
)

// Status says how a request went.
type Status byte

// The statuses.
const (
	OK               Status = 0x00
	NotFound         Status = 0x01 // Get, Release: there is no counter of that name
	InvalidArguments Status = 0x04 // the request is malformed, or asks for what can never be
	Denied           Status = 0x20 // the client may not do this; the body says why
	NotAvailable     Status = 0x21 // Acquire: the consumption would be over the maximum
	NotAcquired      Status = 0x22 // Release: more than this connection has acquired
	UnknownCommand   Status = 0x81
	OutOfMemory      Status = 0x82 // Acquire: there is no room for another counter
)

// String returns the text that the body of a reply with the status has, "" for OK.
func (s Status) String() string {
	switch s {
	case OK:
		return ""
	case NotFound:
		return "Not found"
	case InvalidArguments:
		return "Invalid arguments"
	case Denied:
		return "Access denied"
	case NotAvailable:
		return "Resource not available"
	case NotAcquired:
		return "Not acquired"
	case UnknownCommand:
		return "Unknown command"
	case OutOfMemory:
		return "OutOfMemory"
	}
	return "Unknown status"
}

// Header begins a request and a reply.
//
//	magic 1 | opcode 1 | flags or status 1 | reserved 1 | body length 4 | opaque 4
//
// Flags, which no request has yet, and the reserved byte are written as 0 and not looked at.
type Header struct {
	Magic  byte
	Op     Opcode
	Status Status // of a reply
	Size   uint32 // length of the body in bytes
	Opaque uint32 // a reply has that of its request
}

// AppendHeader appends h to dst.
func AppendHeader(dst []byte, h Header) []byte {
	dst = append(dst, h.Magic, byte(h.Op), byte(h.Status), 0)
	dst = binary.BigEndian.AppendUint32(dst, h.Size)
	return binary.BigEndian.AppendUint32(dst, h.Opaque)
}

// DecodeHeader reads a Header from the first HeaderLen bytes of p, which must be there.
func DecodeHeader(p []byte) Header {
	_ = p[HeaderLen-1]
	return Header{
		Magic:  p[0],
		Op:     Opcode(p[1]),
		Status: Status(p[2]),
		Size:   binary.BigEndian.Uint32(p[4:]),
		Opaque: binary.BigEndian.Uint32(p[8:]),
	}
}
