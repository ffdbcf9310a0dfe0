package date

import (
	"bytes"
	"math"
)

// scanner takes a date apart, from left to right.
type scanner struct {
	rest []byte
}

// skip takes c, if it is next.
func (sc *scanner) skip(c byte) bool {
	if len(sc.rest) == 0 || sc.rest[0] != c {
		return false
	}
	sc.rest = sc.rest[1:]
	return true
}

// blanks takes all blanks that are next and reports whether there were any.
func (sc *scanner) blanks() bool {
	any := false
	for sc.skip(' ') {
		any = true
	}
	return any
}

// number takes up to most digits. It stays at the largest number there is.
func (sc *scanner) number(most int) (n, digits int) {
	for len(sc.rest) > 0 && isDigit(sc.rest[0]) && digits < most {
		d := int(sc.rest[0] - '0')
		if n > (math.MaxInt-d)/10 {
			n = math.MaxInt
		} else {
			n = n*10 + d
		}
		sc.rest = sc.rest[1:]
		digits++
	}
	return n, digits
}

// two takes a number of exactly two digits.
func (sc *scanner) two() (n int, ok bool) {
	n, digits := sc.number(2)
	return n, digits == 2
}

// hex takes a hexadecimal number up to the end.
func (sc *scanner) hex() (int64, bool) {
	var n int64
	for _, c := range sc.rest {
		d, ok := hexValue(c)
		if !ok || n > math.MaxInt64>>4 {
			return 0, false
		}
		n = n<<4 | int64(d)
	}
	return n, len(sc.rest) > 0
}

// clock takes HH:MM, seconds and their fraction if they are there, and returns seconds since midnight.
func (sc *scanner) clock() (int64, bool) {
	hour, ok := sc.two()
	if !ok || !sc.skip(':') {
		return 0, false
	}
	minute, ok := sc.two()
	second := 0
	if ok && sc.skip(':') {
		if second, ok = sc.two(); ok && sc.skip('.') {
			sc.number(math.MaxInt)
		}
	}
	return int64(hour*60+minute)*60 + int64(second), ok
}

// zone takes a time zone up to the end and returns its offset from GMT in seconds. Names it does not know, and none,
// mean GMT.
func (sc *scanner) zone() (offset int64, ok bool) {
	sign := int64(1)
	switch {
	case sc.skip('+'):
	case sc.skip('-'):
		sign = -1
	default:
		return sc.namedZone(), true
	}
	hour, ok := sc.two()
	if !ok {
		return 0, false
	}
	sc.skip(':')
	minute, ok := sc.two()
	return sign * int64(hour*60+minute) * 60, ok && len(sc.rest) == 0
}

func (sc *scanner) namedZone() int64 {
	const hour = 60 * 60
	switch string(sc.rest) {
	case "JST", "KST":
		return 9 * hour
	case "CCT":
		return 8 * hour
	case "EDT":
		return -4 * hour
	case "EST", "CDT":
		return -5 * hour
	case "CST", "MDT":
		return -6 * hour
	case "MST", "PDT":
		return -7 * hour
	case "PST":
		return -8 * hour
	case "HDT":
		return -9 * hour
	case "HST":
		return -10 * hour
	}
	return 0
}

// month takes the English name of a month, three letters of any case, and returns its number; 0 for another word.
func (sc *scanner) month() int {
	const names = "janfebmaraprmayjunjulaugsepoctnovdec"
	if len(sc.rest) < 3 {
		return 0
	}
	for i := 0; i < len(names); i += 3 {
		if bytes.EqualFold(sc.rest[:3], []byte(names[i:i+3])) {
			sc.rest = sc.rest[3:]
			return i/3 + 1
		}
	}
	return 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func hexValue(c byte) (int, bool) {
	switch {
	case isDigit(c):
		return int(c - '0'), true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10, true
	}
	return 0, false
}
