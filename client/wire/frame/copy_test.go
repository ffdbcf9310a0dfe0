package frame_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
)

func copyParts() []part {
	request := frame.CopyRequest{Flags: 1, DBIdx: 2, Name: []byte("ab"), From: []byte("c")}
	header := frame.CopyHeader{Flags: frame.CopyPersistent | frame.CopyAscending, DBIdx: 2, TS: 3, Count: 4, Size: 5,
		LogID: [16]byte{0: 6, 15: 7}}
	versioned := frame.CopyHeader{Flags: frame.CopyVersioned, TS: 3, ClearedAt: 8, ClearedBy: 9, Floor: 10}
	updated := frame.CopyHeader{Flags: frame.CopyVersioned | frame.CopyUpdated, TS: 3, ClearedAt: 8, ClearedBy: 9, Floor: 10,
		Newest: 11, NewestBy: 12}
	version := frame.CopyVersion{CopyRecord: frame.CopyRecord{Key: []byte("k"), Value: []byte{}}, Stamp: 5, SID: 6, Removed: true}
	record := frame.CopyRecord{Key: []byte("k"), Value: []byte("vw")}
	block := frame.CopyPart{Kind: frame.CopyBlock, Records: []byte("123456789")}
	end := frame.CopyPart{Kind: frame.CopyEnd, Count: 1, Bytes: 2, Digest: [32]byte{0: 3, 31: 4}}
	failed := frame.CopyPart{Kind: frame.CopyFailed, Text: []byte("no")}
	return []part{
		coded("request", "b6 00000001 0002 00000002 00000001 6162 63",
			frame.AppendCopyRequest, frame.DecodeCopyRequest, request),
		coded("header", "b6 00000003 0002 0000000000000003 0000000000000004 0000000000000005 06000000000000000000000000000007",
			frame.AppendCopyHeader, frame.DecodeCopyHeader, header),
		coded("header with versions", "b6 00000008 0000 0000000000000003 0000000000000000 0000000000000000 00000000000000000000000000000000"+
			" 0000000000000008 0009 000000000000000a",
			frame.AppendCopyHeader, frame.DecodeCopyHeader, versioned),
		coded("header with the newest update", "b6 00000018 0000 0000000000000003 0000000000000000 0000000000000000"+
			" 00000000000000000000000000000000 0000000000000008 0009 000000000000000a 000000000000000b 000c",
			frame.AppendCopyHeader, frame.DecodeCopyHeader, updated),
		coded("version", "0000000000000005 0006 01 00000001 00000000 6b",
			frame.AppendCopyVersion, frame.DecodeCopyVersion, version),
		coded("record", "00000001 00000002 6b 7677",
			frame.AppendCopyRecord, frame.DecodeCopyRecord, record),
		coded("block", "01 00000009 e3069283 313233343536373839", // the check value of CRC-32C
			frame.AppendCopyPart, frame.DecodeCopyPart, block),
		coded("end", "00 0000000000000001 0000000000000002 0300000000000000000000000000000000000000000000000000000000000004",
			frame.AppendCopyPart, frame.DecodeCopyPart, end),
		coded("failed", "bf 00000002 6e6f",
			frame.AppendCopyPart, frame.DecodeCopyPart, failed),
	}
}

func copyRefusals() []refusal {
	return []refusal{
		{"request of another kind", "b4", decoder(frame.DecodeCopyRequest), frame.ErrMagic},
		{"name too long", "b6 00000000 0000 10000001 00000000", decoder(frame.DecodeCopyRequest), frame.ErrTooLarge},
		{"no header", "bf", decoder(frame.DecodeCopyHeader), frame.ErrMagic},
		{"no part", "02", decoder(frame.DecodeCopyPart), frame.ErrMagic},
		{"block too long", "01 60000001 00000000", decoder(frame.DecodeCopyPart), frame.ErrTooLarge},
		{"text too long", "bf 10000001", decoder(frame.DecodeCopyPart), frame.ErrTooLarge},
		{"wrong checksum", "01 00000001 00000000 00", decoder(frame.DecodeCopyPart), frame.ErrChecksum},
		{"half removed", "0000000000000005 0006 02", decoder(frame.DecodeCopyVersion), frame.ErrMagic},
		{"key too long", "60000001 00000000", decoder(frame.DecodeCopyRecord), frame.ErrTooLarge},
	}
}

// FuzzCopy decodes arbitrary bytes as every part: what is decoded must encode to the bytes it was
// decoded from.
func FuzzCopy(f *testing.F) {
	for _, c := range copyParts() {
		f.Add(c.encode())
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if v, n, err := frame.DecodeCopyRequest(p); err == nil {
			require.True(t, bytes.Equal(p[:n], frame.AppendCopyRequest(nil, v)))
		}
		if v, n, err := frame.DecodeCopyHeader(p); err == nil {
			require.True(t, bytes.Equal(p[:n], frame.AppendCopyHeader(nil, v)))
		}
		if v, n, err := frame.DecodeCopyPart(p); err == nil {
			require.True(t, bytes.Equal(p[:n], frame.AppendCopyPart(nil, v)))
		}
		if v, n, err := frame.DecodeCopyRecord(p); err == nil {
			require.True(t, bytes.Equal(p[:n], frame.AppendCopyRecord(nil, v)))
		}
		if v, n, err := frame.DecodeCopyVersion(p); err == nil {
			require.True(t, bytes.Equal(p[:n], frame.AppendCopyVersion(nil, v)))
		}
	})
}
