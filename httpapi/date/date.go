// Package date reads the dates that clients of the server write: in the header X-Kt-Xt, and for
// ktutilmgr.
package date

import (
	"bytes"
	"math"
	"time"
)

// None is what Parse returns for a text that is no date.
const None = math.MinInt64

// Parse returns the UNIX seconds of a text: a number of seconds, in decimal with a unit or in
// hexadecimal, or a date in the form of W3C's note on date formats or of RFC 822.
//
// Clients write dates of which only the beginning is right, and the original server takes that
// beginning: "2041-01" is the first of January, and "26 Nov 2036 20h" is the day without its time.
// Parse stops at the damage exactly where the original does. A stricter reading would call such a
// text no date, and a record with an expiration time that is no date lives for ever.
func Parse(text []byte) int64 {
	if end := bytes.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	text = skipBlanks(text)
	if len(text) == 0 {
		return None
	}
	if seconds, ok := parseSeconds(text); ok {
		return seconds
	}
	switch at(text, 4) {
	case '-':
		return parseW3C(text, '-', 'T')
	case '/':
		return parseW3C(text, '/', ' ')
	}
	return parseRFC822(text)
}

// parseSeconds reads a hexadecimal number, up to the first byte that is no digit, or a decimal
// number with an optional unit, behind which a blank and anything may follow.
func parseSeconds(text []byte) (seconds int64, ok bool) {
	if rest, isHex := skipHexMark(text); isHex {
		if twice, again := skipHexMark(skipBlanks(rest)); again {
			rest = twice
		}
		return hexNumber(skipBlanks(rest)), true
	}
	if sign := text[0]; sign == '+' || sign == '-' {
		return 0, false
	}
	n, rest := digits(text)
	rest = skipBlanks(rest)
	if len(rest) == 0 {
		return n, true
	}
	unit := int64(1)
	switch rest[0] | 0x20 {
	case 's':
	case 'm':
		unit = 60
	case 'h':
		unit = 60 * 60
	case 'd':
		unit = 24 * 60 * 60
	default:
		return 0, false
	}
	return min(n, math.MaxInt64/unit) * unit, len(rest) == 1 || isBlank(rest[1])
}

// parseW3C reads YYYY-MM-DDThh:mm:ss.fff+hh:mm, with the given marks between the parts of the day
// and in front of the clock. A part counts if the mark in front of it is where it belongs; the
// first mark that is elsewhere ends the date.
//
//	0123456789012345678
//	YYYY-MM-DDThh:mm:ss
func parseW3C(text []byte, mark, clockMark byte) int64 {
	year, month, day := number(text), 1, 1
	if bytes.IndexByte(text, mark) != 4 {
		return instant(year, month, day, 0, 0, 0)
	}
	month = number(text[5:])
	if !next(text, 5, mark, 7) {
		return instant(year, month, day, 0, 0, 0)
	}
	day = number(text[8:])
	if !next(text, 8, clockMark, 10) {
		return instant(year, month, day, 0, 0, 0)
	}
	hour, minute, second := number(text[11:]), 0, 0
	last := 11 // where the last part of the clock begins
	if next(text, last, ':', 13) {
		last, minute = 14, number(text[14:])
	}
	if next(text, last, ':', 16) {
		last, second = 17, number(text[17:])
	}
	if point := bytes.IndexByte(text[last:], '.'); point >= 0 && last+point >= 19 {
		last += point + 1
	}
	return instant(year, month, day, hour, minute, second-offset(text[last:]))
}

// offset returns the seconds of a zone +hh:mm behind the digits that text begins with, 0 without a
// zone.
func offset(text []byte) int {
	_, zone := digits(text)
	if len(zone) < 6 || zone[3] != ':' {
		return 0
	}
	seconds := number(zone[1:])*3600 + number(zone[4:])*60
	switch zone[0] {
	case '+':
		return seconds
	case '-':
		return -seconds
	}
	return 0
}

// parseRFC822 reads [Www, ]DD Mon YYYY hh:mm:ss [zone]. A year before 1969 counts from 1900. A
// clock of any other form, also a clock without seconds, does not count: the result is the
// beginning of the day.
func parseRFC822(text []byte) int64 {
	if at(text, 3) == ',' {
		text = text[4:]
	}
	text = skip(text, isSpace)
	day := number(text)
	text = skip(text, func(c byte) bool { return isDigit(c) || isSpace(c) })
	month := monthOf(text)
	if day <= 0 || month == 0 {
		return None
	}
	text = skip(text[3:], isSpace)
	year := number(text)
	if year < 0 {
		return None
	}
	if year < 1969 {
		year += 1900
	}
	clock := skip(skip(text, isDigit), isSpace)
	if len(clock) < 8 || clock[2] != ':' || clock[5] != ':' {
		return instant(year, month, day, 0, 0, 0)
	}
	return instant(year, month, day, number(clock), number(clock[3:]), number(clock[6:])-zone(clock[8:]))
}

// zone returns the offset from GMT, in seconds, that follows a clock of RFC 822: +hhmm, or a name.
// An unknown name and a missing zone mean GMT. The four bytes behind a sign count as digits
// whatever they are, as in the original.
func zone(text []byte) int {
	if at(text, 0) == ' ' && len(text) >= 6 && (text[1] == '+' || text[1] == '-') {
		digit := func(i int) int { return int(int8(text[i])) - '0' }
		seconds := digit(2)*36000 + digit(3)*3600 + digit(4)*600 + digit(5)*60
		if text[1] == '-' {
			return -seconds
		}
		return seconds
	}
	if len(text) < 2 {
		return 0
	}
	return 3600 * hoursOf(string(text[1:]))
}

// instant returns the UNIX seconds of a moment in GMT. A part out of its range changes the part in
// front of it: the 0th of a month is the last day of the month before.
func instant(year, month, day, hour, minute, second int) int64 {
	return time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC).Unix()
}
