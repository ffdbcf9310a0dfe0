package redisfile

import (
	"encoding/binary"
	"strconv"
)

// The first two bits of a length say how it goes on:
//
//	00 length in 6 bits            01 length in 14 bits
//	10 0x80: 4 bytes, 0x81: 8      11 no length: the string is encoded as the other 6 bits say
const (
	encodedInt8  = 0
	encodedInt16 = 1
	encodedInt32 = 2
	encodedLZF   = 3
)

// lengthOf reads a length, or the encoding of a string.
func (d *rdb) lengthOf() (n uint64, encoded bool, err error) {
	first, err := d.byte()
	if err != nil {
		return 0, false, err
	}
	switch first >> 6 {
	case 0:
		return uint64(first & 0x3F), false, nil
	case 1:
		second, err := d.byte()
		return uint64(first&0x3F)<<8 | uint64(second), false, err
	case 3:
		return uint64(first & 0x3F), true, nil
	}
	switch first {
	case 0x80:
		b, err := d.bytes(4)
		if err != nil {
			return 0, false, err
		}
		return uint64(binary.BigEndian.Uint32(b)), false, nil
	case 0x81:
		b, err := d.bytes(8)
		if err != nil {
			return 0, false, err
		}
		return binary.BigEndian.Uint64(b), false, nil
	}
	return 0, false, damaged("a length that begins with %#x", first)
}

func (d *rdb) length() (uint64, error) {
	n, encoded, err := d.lengthOf()
	if err == nil && encoded {
		err = damaged("an encoded string where a number should be")
	}
	return n, err
}

// string reads a string.
func (d *rdb) string() ([]byte, error) {
	n, encoded, err := d.lengthOf()
	if err != nil || !encoded {
		if err != nil {
			return nil, err
		}
		return d.bytes(n)
	}
	switch n {
	case encodedInt8, encodedInt16, encodedInt32:
		b, err := d.bytes(1 << n)
		if err != nil {
			return nil, err
		}
		return strconv.AppendInt(nil, littleInt(b), 10), nil
	case encodedLZF:
		packed, err := d.length()
		if err != nil {
			return nil, err
		}
		size, err := d.length()
		if err != nil {
			return nil, err
		}
		b, err := d.bytes(packed)
		if err != nil {
			return nil, err
		}
		return unpackLZF(b, size)
	}
	return nil, damaged("a string with the encoding %d", n)
}

// littleInt is the signed number in 1, 2 or 4 bytes.
func littleInt(b []byte) int64 {
	switch len(b) {
	case 1:
		return int64(int8(b[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	}
	return int64(int32(binary.LittleEndian.Uint32(b)))
}

// longestRun is the most bytes that one token of three bytes stands for.
const longestRun = 264

// unpackLZF unpacks the format of LibLZF: tokens of
//
//	000LLLLL                     L+1 bytes follow as they are
//	LLLooooo oooooooo            L+2 bytes (L < 7) from o+1 bytes before
//	111ooooo LLLLLLLL oooooooo   L+9 bytes from o+1 bytes before
func unpackLZF(in []byte, size uint64) ([]byte, error) {
	if size > uint64(len(in))*longestRun {
		return nil, damaged("%d bytes cannot be packed into %d", size, len(in))
	}
	out := make([]byte, 0, size)
	for len(in) > 0 {
		token := int(in[0])
		in = in[1:]
		if token < 32 {
			if len(in) < token+1 {
				return nil, damaged("a packed string ends too early")
			}
			out = append(out, in[:token+1]...)
			in = in[token+1:]
			continue
		}
		run := token>>5 + 2
		if token>>5 == 7 && len(in) > 0 {
			run += int(in[0])
			in = in[1:]
		}
		if len(in) == 0 {
			return nil, damaged("a packed string ends too early")
		}
		from := len(out) - (token&0x1F<<8 | int(in[0])) - 1
		in = in[1:]
		if from < 0 || uint64(len(out)+run) > size {
			return nil, damaged("a packed string refers to bytes that it does not have")
		}
		for i := range run { // byte by byte: source and destination may overlap
			out = append(out, out[from+i])
		}
	}
	if uint64(len(out)) != size {
		return nil, damaged("a packed string has %d bytes instead of %d", len(out), size)
	}
	return out, nil
}
