package frame

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// CopyRequest asks for a database as it is at an instant. The server answers with a CopyHeader and
// CopyParts, the last of which ends the copy. If there is no copy, it answers with a CopyPart that
// says why. Servers that do not know the request close the connection.
//
//	magic 1 | flags 4 | dbidx 2 | nsiz 4 | fsiz 4 | name | from
type CopyRequest struct {
	Flags uint32 // CopyForFollower, CopyVersions; other flags are refused
	DBIdx uint16 // index of the database, used if Name is empty
	Name  []byte
	From  []byte // only records behind this key; needs CopyAscending; empty: all records
}

// CopyForFollower says that the copy is for a server that follows this one. The upper half of the
// flags has that server's ID.
const CopyForFollower uint32 = 1 << 0

// CopyVersions asks for the versions of the records, and for the removals that the database
// remembers. If the database keeps versions, the header has CopyVersioned.
const CopyVersions uint32 = 1 << 1

// CopyNewest asks for a longer header, with the newest update in the log. Servers whose Hello has
// no CopyNewest refuse it.
const CopyNewest uint32 = 1 << 2

const copyRequestHead = 15

// AppendCopyRequest appends r to dst.
func AppendCopyRequest(dst []byte, r CopyRequest) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, byte(Copy)), r.Flags)
	dst = binary.BigEndian.AppendUint16(dst, r.DBIdx)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(r.Name)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(r.From)))
	return append(append(dst, r.Name...), r.From...)
}

// DecodeCopyRequest reads a CopyRequest from p.
func DecodeCopyRequest(p []byte) (r CopyRequest, n int, err error) {
	if len(p) > 0 && Magic(p[0]) != Copy {
		return CopyRequest{}, 0, ErrMagic
	}
	if len(p) < copyRequestHead {
		return CopyRequest{}, copyRequestHead, ErrShort
	}
	nameEnd, n, err := sections(p, copyRequestHead, binary.BigEndian.Uint32(p[7:]), binary.BigEndian.Uint32(p[11:]), MaxSize)
	if err != nil {
		return CopyRequest{}, n, err
	}
	return CopyRequest{
		Flags: binary.BigEndian.Uint32(p[1:]),
		DBIdx: binary.BigEndian.Uint16(p[5:]),
		Name:  p[copyRequestHead:nameEnd:nameEnd],
		From:  p[nameEnd:n:n],
	}, n, nil
}

// Flags of a CopyHeader.
const (
	CopyPersistent uint32 = 1 << iota // values have no expiration time in front of them
	CopyAscending                     // records are sorted by the bytes of their keys
	CopyDecimal                       // the database compares keys as numbers
	CopyVersioned                     // the header is longer, and records are CopyVersions
	CopyUpdated                       // the header is longer: it has the newest update
)

// CopyHeader begins a copy.
//
//	magic 1 | flags 4 | dbidx 2 | ts 8 | count 8 | size 8 | log identity 16
//
// and with CopyVersioned
//
//	cleared 8 | by 2 | floor 8
//
// and behind that, with CopyUpdated
//
//	newest 8 | made by 2
type CopyHeader struct {
	Flags uint32
	DBIdx uint16
	TS    uint64   // the copy has exactly the updates of the server's log up to TS
	Count uint64   // records of the database, also those that From leaves out
	Size  uint64   // of the database in bytes, to show progress
	LogID [16]byte // identity of the server's update log; zeros: there is no log

	ClearedAt uint64 // version of the last clear; 0: there was none
	ClearedBy uint16
	Floor     uint64 // newest removal that the database has forgotten; 0: none

	Newest   uint64 // newest update in the server's log when the copy was begun; 0: unknown
	NewestBy uint16 // ID of the server that made the newest update
}

const (
	copyHeaderLen    = 47
	copyVersionedLen = 18
	copyUpdatedLen   = 10
)

// AppendCopyHeader appends h to dst.
func AppendCopyHeader(dst []byte, h CopyHeader) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, byte(Copy)), h.Flags)
	dst = binary.BigEndian.AppendUint16(dst, h.DBIdx)
	dst = binary.BigEndian.AppendUint64(dst, h.TS)
	dst = binary.BigEndian.AppendUint64(dst, h.Count)
	dst = binary.BigEndian.AppendUint64(dst, h.Size)
	dst = append(dst, h.LogID[:]...)
	if h.Flags&CopyVersioned != 0 {
		dst = binary.BigEndian.AppendUint64(dst, h.ClearedAt)
		dst = binary.BigEndian.AppendUint16(dst, h.ClearedBy)
		dst = binary.BigEndian.AppendUint64(dst, h.Floor)
	}
	if h.Flags&CopyUpdated != 0 {
		dst = binary.BigEndian.AppendUint64(dst, h.Newest)
		dst = binary.BigEndian.AppendUint16(dst, h.NewestBy)
	}
	return dst
}

// DecodeCopyHeader reads a CopyHeader from p. It returns ErrMagic if p begins with something else,
// for example a CopyPart.
func DecodeCopyHeader(p []byte) (h CopyHeader, n int, err error) {
	if len(p) > 0 && Magic(p[0]) != Copy {
		return CopyHeader{}, 0, ErrMagic
	}
	if len(p) < copyHeaderLen {
		return CopyHeader{}, copyHeaderLen, ErrShort
	}
	h = CopyHeader{
		Flags: binary.BigEndian.Uint32(p[1:]),
		DBIdx: binary.BigEndian.Uint16(p[5:]),
		TS:    binary.BigEndian.Uint64(p[7:]),
		Count: binary.BigEndian.Uint64(p[15:]),
		Size:  binary.BigEndian.Uint64(p[23:]),
		LogID: [16]byte(p[31:copyHeaderLen]),
	}
	n = copyHeaderLen
	if h.Flags&CopyVersioned != 0 {
		n += copyVersionedLen
	}
	if h.Flags&CopyUpdated != 0 {
		n += copyUpdatedLen
	}
	if len(p) < n {
		return CopyHeader{}, n, ErrShort
	}
	p = p[copyHeaderLen:n]
	if h.Flags&CopyVersioned != 0 {
		h.ClearedAt, h.ClearedBy, h.Floor = binary.BigEndian.Uint64(p), binary.BigEndian.Uint16(p[8:]), binary.BigEndian.Uint64(p[10:])
		p = p[copyVersionedLen:]
	}
	if h.Flags&CopyUpdated != 0 {
		h.Newest, h.NewestBy = binary.BigEndian.Uint64(p), binary.BigEndian.Uint16(p[8:])
	}
	return h, n, nil
}

// CopyKind is the first byte of a CopyPart.
type CopyKind byte

// The kinds.
const (
	CopyEnd    CopyKind = 0 // the copy is complete
	CopyBlock  CopyKind = 1
	CopyFailed          = CopyKind(Error) // there is no copy, or the copy ends here
)

// CopyPart is a part of a copy behind the header.
//
//	block     01 1 | size 4 | crc 4 | CopyRecord *     crc: CRC-32C of the records
//	end       00 1 | count 8 | bytes 8 | digest 32     of all records; digest: their SHA-256
//	failed    BF 1 | size 4 | text
type CopyPart struct {
	Kind    CopyKind
	Records []byte // of a block: at least one record
	Count   uint64 // of the end: number of records
	Bytes   uint64
	Digest  [32]byte
	Text    []byte // of a failure: the reason
}

// ErrChecksum: the bytes of a block are damaged.
var ErrChecksum = errors.New("checksum of a block is wrong")

const (
	copyBlockHead  = 9
	copyEndLen     = 49
	copyFailedHead = 5
)

func copyCRC(records []byte) uint32 {
	return crc32.Checksum(records, crc32.MakeTable(crc32.Castagnoli))
}

// AppendCopyPart appends part to dst.
func AppendCopyPart(dst []byte, part CopyPart) []byte {
	dst = append(dst, byte(part.Kind))
	switch part.Kind {
	case CopyBlock:
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(part.Records)))
		dst = binary.BigEndian.AppendUint32(dst, copyCRC(part.Records))
		return append(dst, part.Records...)
	case CopyEnd:
		dst = binary.BigEndian.AppendUint64(dst, part.Count)
		dst = binary.BigEndian.AppendUint64(dst, part.Bytes)
		return append(dst, part.Digest[:]...)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(part.Text)))
	return append(dst, part.Text...)
}

// DecodeCopyPart reads a CopyPart from p.
func DecodeCopyPart(p []byte) (part CopyPart, n int, err error) {
	if len(p) == 0 {
		return CopyPart{}, 1, ErrShort
	}
	switch part.Kind = CopyKind(p[0]); part.Kind {
	case CopyBlock:
		return decodeCopyBlock(p, part)
	case CopyFailed:
		return decodeCopyFailed(p, part)
	case CopyEnd:
		if len(p) < copyEndLen {
			return CopyPart{}, copyEndLen, ErrShort
		}
		part.Count, part.Bytes = binary.BigEndian.Uint64(p[1:]), binary.BigEndian.Uint64(p[9:])
		part.Digest = [32]byte(p[17:copyEndLen])
		return part, copyEndLen, nil
	}
	return CopyPart{}, 0, ErrMagic
}

// decodeCopyBlock completes part, whose kind is known.
func decodeCopyBlock(p []byte, part CopyPart) (CopyPart, int, error) {
	if len(p) < copyBlockHead {
		return CopyPart{}, copyBlockHead, ErrShort
	}
	_, n, err := sections(p, copyBlockHead, binary.BigEndian.Uint32(p[1:]), 0, MaxMessage)
	if err != nil {
		return CopyPart{}, n, err
	}
	part.Records = p[copyBlockHead:n:n]
	if copyCRC(part.Records) != binary.BigEndian.Uint32(p[5:]) {
		return CopyPart{}, 0, ErrChecksum
	}
	return part, n, nil
}

// decodeCopyFailed completes part, whose kind is known.
func decodeCopyFailed(p []byte, part CopyPart) (CopyPart, int, error) {
	if len(p) < copyFailedHead {
		return CopyPart{}, copyFailedHead, ErrShort
	}
	_, n, err := sections(p, copyFailedHead, binary.BigEndian.Uint32(p[1:]), 0, MaxSize)
	if err != nil {
		return CopyPart{}, n, err
	}
	part.Text = p[copyFailedHead:n:n]
	return part, n, nil
}

// CopyRecord is a record of a block.
//
//	ksiz 4 | vsiz 4 | key | value
type CopyRecord struct {
	// Value is in stored form: with 40 bits of expiration time in front, unless the copy is
	// CopyPersistent.
	Key, Value []byte
}

const copyRecordHead = 8

// AppendCopyRecord appends r to dst.
func AppendCopyRecord(dst []byte, r CopyRecord) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(r.Key)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(r.Value)))
	return append(append(dst, r.Key...), r.Value...)
}

// DecodeCopyRecord reads a CopyRecord from p.
func DecodeCopyRecord(p []byte) (r CopyRecord, n int, err error) {
	if len(p) < copyRecordHead {
		return CopyRecord{}, copyRecordHead, ErrShort
	}
	keyEnd, n, err := sections(p, copyRecordHead, binary.BigEndian.Uint32(p), binary.BigEndian.Uint32(p[4:]), MaxMessage)
	if err != nil {
		return CopyRecord{}, n, err
	}
	return CopyRecord{Key: p[copyRecordHead:keyEnd:keyEnd], Value: p[keyEnd:n:n]}, n, nil
}

// CopyVersion is a record with its version, or a removal, in a copy that is CopyVersioned.
//
//	stamp 8 | sid 2 | removed 1 | CopyRecord
type CopyVersion struct {
	CopyRecord        // without a value in a removal
	Stamp      uint64 // version: time stamp of the update, and ID of the server that made it
	SID        uint16
	Removed    bool
}

const copyVersionHead = 11

// AppendCopyVersion appends r to dst.
func AppendCopyVersion(dst []byte, r CopyVersion) []byte {
	dst = binary.BigEndian.AppendUint64(dst, r.Stamp)
	dst = binary.BigEndian.AppendUint16(dst, r.SID)
	removed := byte(0)
	if r.Removed {
		removed = 1
	}
	return AppendCopyRecord(append(dst, removed), r.CopyRecord)
}

// DecodeCopyVersion reads a CopyVersion from p.
func DecodeCopyVersion(p []byte) (r CopyVersion, n int, err error) {
	if len(p) < copyVersionHead {
		return CopyVersion{}, copyVersionHead, ErrShort
	}
	if p[10] > 1 {
		return CopyVersion{}, 0, ErrMagic
	}
	record, n, err := DecodeCopyRecord(p[copyVersionHead:])
	if err != nil {
		return CopyVersion{}, n + copyVersionHead, err
	}
	return CopyVersion{record, binary.BigEndian.Uint64(p), binary.BigEndian.Uint16(p[8:]), p[10] != 0}, n + copyVersionHead, nil
}
