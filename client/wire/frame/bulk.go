package frame

import "encoding/binary"

// Header begins a set_bulk, remove_bulk or get_bulk request.
//
//	magic 1 | flags 4 | rnum 4
type Header struct {
	Magic Magic
	Flags uint32
	RNum  uint32 // number of records that follow
}

// HeaderLen is the length of a Header in bytes.
const HeaderLen = 9

// AppendHeader appends h to dst.
func AppendHeader(dst []byte, h Header) []byte {
	dst = append(dst, byte(h.Magic))
	dst = binary.BigEndian.AppendUint32(dst, h.Flags)
	return binary.BigEndian.AppendUint32(dst, h.RNum)
}

// DecodeHeader reads a Header from p.
func DecodeHeader(p []byte) (h Header, n int, err error) {
	if len(p) > 0 && !Magic(p[0]).bulk() {
		return Header{}, 0, ErrMagic
	}
	if len(p) < HeaderLen {
		return Header{}, HeaderLen, ErrShort
	}
	return Header{
		Magic: Magic(p[0]),
		Flags: binary.BigEndian.Uint32(p[1:]),
		RNum:  binary.BigEndian.Uint32(p[5:]),
	}, HeaderLen, nil
}

func (m Magic) bulk() bool { return m == SetBulk || m == RemoveBulk || m == GetBulk }

// Key names a record in a remove_bulk or get_bulk request.
//
//	dbidx 2 | ksiz 4 | key
type Key struct {
	DBIdx uint16
	Key   []byte
}

const keyHead = 6

// AppendKey appends k to dst.
func AppendKey(dst []byte, k Key) []byte {
	dst = binary.BigEndian.AppendUint16(dst, k.DBIdx)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(k.Key)))
	return append(dst, k.Key...)
}

// DecodeKey reads a Key from p.
func DecodeKey(p []byte) (k Key, n int, err error) {
	if len(p) < keyHead {
		return Key{}, keyHead, ErrShort
	}
	if _, n, err = sections(p, keyHead, binary.BigEndian.Uint32(p[2:]), 0, MaxSize); err != nil {
		return Key{}, n, err
	}
	return Key{DBIdx: binary.BigEndian.Uint16(p), Key: p[keyHead:n:n]}, n, nil
}

// DecodeKeySize reads the database and the length of the key from the beginning of a Key or a
// Record. The rest of the part need not be there.
func DecodeKeySize(p []byte) (dbidx uint16, ksiz int, ok bool) {
	if len(p) < keyHead {
		return 0, 0, false
	}
	return binary.BigEndian.Uint16(p), int(binary.BigEndian.Uint32(p[2:])), true
}

// Record is a record in a set_bulk request or a get_bulk reply.
//
//	dbidx 2 | ksiz 4 | vsiz 4 | xt 8 | key | value
type Record struct {
	DBIdx      uint16
	XT         int64 // request: seconds from now, or minus a Unix time; reply: a Unix time
	Key, Value []byte
}

// RecordHead is the number of bytes before the key of a Record.
const RecordHead = 18

// AppendRecord appends r to dst.
func AppendRecord(dst []byte, r Record) []byte {
	return append(AppendRecordHead(dst, r), r.Value...)
}

// AppendRecordHead appends what is in front of r.Value.
func AppendRecordHead(dst []byte, r Record) []byte {
	dst = binary.BigEndian.AppendUint16(dst, r.DBIdx)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(r.Key)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(r.Value)))
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.XT))
	return append(dst, r.Key...)
}

// DecodeRecord reads a Record from p.
func DecodeRecord(p []byte) (r Record, n int, err error) {
	if len(p) < RecordHead {
		return Record{}, RecordHead, ErrShort
	}
	keyEnd, n, err := sections(p, RecordHead, binary.BigEndian.Uint32(p[2:]), binary.BigEndian.Uint32(p[6:]), MaxSize)
	if err != nil {
		return Record{}, n, err
	}
	return Record{
		DBIdx: binary.BigEndian.Uint16(p),
		XT:    int64(binary.BigEndian.Uint64(p[10:])),
		Key:   p[RecordHead:keyEnd:keyEnd],
		Value: p[keyEnd:n:n],
	}, n, nil
}

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
