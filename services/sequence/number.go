package sequence

import (
	"errors"
	"strconv"
	"time"
)

// A number has 16 characters of 6 bits each, the highest first:
//
//	characters  1-2    3        4-5        6-11    12-16
//	content     index  reserve  server_no  second  serial
//	bits        12     6        12         36      30
//
// The index says how many characters each of the four zones has, in 3 bits each: 1, 2, 6, 5, which
// is always "aR". Numbers sorted as bytes are not sorted by value: ASCII puts '-' first and '_'
// between the letters.
const (
	alphabet   = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
	index      = "aR"
	numberSize = 16
	charBits   = 6
	serialBits = 30
	serialMask = 1<<serialBits - 1

	// MaxReserve is the largest value of the reserve zone.
	MaxReserve = 1<<6 - 1
	// MaxServerNo is the largest value of the server_no zone.
	MaxServerNo = 1<<12 - 1
)

// errNumber says that a text is no sequence number.
var errNumber = errors.New("not a sequence number")

// moment is the part of a number that changes: the second in the high bits, the serial in the low
// 30. A sequence gives out moments in growing order.
type moment uint64

func (m moment) second() uint64 { return uint64(m) >> serialBits }
func (m moment) serial() uint64 { return uint64(m) & serialMask }

// appendNumber appends the number of a moment.
func appendNumber(dst []byte, reserve, serverNo int, m moment) []byte {
	dst = append(dst, index...)
	dst = appendZone(dst, uint64(reserve), 1)
	dst = appendZone(dst, uint64(serverNo), 2)
	dst = appendZone(dst, m.second(), 6)
	return appendZone(dst, m.serial(), 5)
}

func appendZone(dst []byte, value uint64, chars int) []byte {
	for shift := (chars - 1) * charBits; shift >= 0; shift -= charBits {
		dst = append(dst, alphabet[value>>shift&(1<<charBits-1)])
	}
	return dst
}

// digit returns the value of a character, -1 for one outside the alphabet.
func digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'Z':
		return int(c-'A') + 36
	case c == '-':
		return 62
	case c == '_':
		return 63
	}
	return -1
}

// zone decodes the first chars characters of text and returns what follows.
func zone(text []byte, chars int) (value uint64, rest []byte, err error) {
	if len(text) < chars {
		return 0, nil, errNumber
	}
	for _, c := range text[:chars] {
		d := digit(c)
		if d < 0 {
			return 0, nil, errNumber
		}
		value = value<<charBits | uint64(d)
	}
	return value, text[chars:], nil
}

// appendExplained appends the parts of a number in words. Lengths other than 1, 2, 6, 5 in the
// index are followed, and characters behind the last zone are ignored, as the original does.
func appendExplained(dst, number []byte, local *time.Location) ([]byte, error) {
	lengths, rest, err := zone(number, len(index))
	var values [4]uint64
	for i := 0; i < len(values) && err == nil; i++ {
		chars := int(lengths >> (9 - 3*i) & 7)
		values[i], rest, err = zone(rest, chars)
	}
	if err != nil {
		return dst, err
	}
	dst = strconv.AppendUint(append(dst, "reserve: "...), values[0], 10)
	dst = strconv.AppendUint(append(dst, "  server_no: "...), values[1], 10)
	dst = strconv.AppendUint(append(dst, "  secondstamp: "...), values[2], 10)
	dst = time.Unix(int64(values[2]), 0).In(local).AppendFormat(append(dst, " ("...), time.DateTime)
	dst = strconv.AppendUint(append(dst, ")  serial_no: "...), values[3], 10)
	return append(dst, '\n'), nil
}
