package frame

import "encoding/binary"

// ReplyLen is the length of the beginning of a reply in bytes.
//
//	magic 1 | rnum 4
//
// rnum is the number of records that were stored or removed, or of the records that follow.
const ReplyLen = 5

// AppendReply appends the beginning of a reply to dst.
func AppendReply(dst []byte, m Magic, rnum uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, byte(m)), rnum)
}

// DecodeReply reads the beginning of a reply to a request with the magic byte m. For the reply
// Error it returns ErrRefused and n = 1.
func DecodeReply(p []byte, m Magic) (rnum uint32, n int, err error) {
	switch {
	case len(p) == 0:
		return 0, 1, ErrShort
	case Magic(p[0]) == Error:
		return 0, 1, ErrRefused
	case Magic(p[0]) != m:
		return 0, 0, ErrMagic
	case len(p) < ReplyLen:
		return 0, ReplyLen, ErrShort
	}
	return binary.BigEndian.Uint32(p[1:]), ReplyLen, nil
}
