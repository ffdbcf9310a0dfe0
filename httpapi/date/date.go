// Package date reads the dates that clients of the server write: in the header X-Kt-Xt, and for ktutilmgr.
package date

import (
	"bytes"
	"math"
	"time"
)

// None is what Parse returns for a text that is no date.
const None = math.MinInt64

// Parse returns the UNIX seconds of a text (reference: section 11): a number of seconds, in decimal with a unit or in
// hexadecimal, or a date as W3C or RFC 822 write it. Blanks around it do not matter.
func Parse(text []byte) int64 {
	text = bytes.TrimFunc(text, func(r rune) bool { return r <= ' ' })
	if seconds, ok := parseSeconds(text); ok {
		return seconds
	}
	if seconds, ok := parseW3C(text); ok {
		return seconds
	}
	if seconds, ok := parseRFC822(text); ok {
		return seconds
	}
	return None
}

// parseSeconds reads a number with an optional unit.
func parseSeconds(text []byte) (int64, bool) {
	sc := scanner{text}
	if sc.skip('0') && (sc.skip('x') || sc.skip('X')) {
		return sc.hex()
	}
	sc = scanner{text}
	n, digits := sc.number(math.MaxInt)
	if digits == 0 {
		return 0, false
	}
	unit := int64(1)
	switch {
	case sc.skip('s') || sc.skip('S'):
	case sc.skip('m') || sc.skip('M'):
		unit = 60
	case sc.skip('h') || sc.skip('H'):
		unit = 60 * 60
	case sc.skip('d') || sc.skip('D'):
		unit = 24 * 60 * 60
	}
	return min(int64(n), math.MaxInt64/unit) * unit, len(sc.rest) == 0
}

// parseW3C reads YYYY-MM-DD, with slashes too, and an optional time with an optional zone.
func parseW3C(text []byte) (int64, bool) {
	sc := scanner{text}
	year, digits := sc.number(4)
	separator := byte('-')
	if len(sc.rest) > 0 && sc.rest[0] == '/' {
		separator = '/'
	}
	if digits != 4 || !sc.skip(separator) {
		return 0, false
	}
	month, ok := sc.two()
	if !ok || !sc.skip(separator) {
		return 0, false
	}
	day, ok := sc.two()
	if !ok {
		return 0, false
	}
	var clock int64
	if len(sc.rest) > 0 {
		if !sc.skip('T') && !sc.skip(' ') {
			return 0, false
		}
		if clock, ok = sc.clock(); !ok {
			return 0, false
		}
	}
	zone, ok := sc.zone()
	return midnight(year, month, day) + clock - zone, ok
}

// parseRFC822 reads [Www, ]DD Mon YYYY HH:MM:SS [zone]. A year before 1969 counts from 1900.
func parseRFC822(text []byte) (int64, bool) {
	sc := scanner{text}
	if len(text) > 3 && text[3] == ',' {
		sc.rest = text[4:]
	}
	sc.blanks()
	day, digits := sc.number(2)
	if digits == 0 || !sc.blanks() {
		return 0, false
	}
	month := sc.month()
	if month == 0 || !sc.blanks() {
		return 0, false
	}
	year, digits := sc.number(4)
	if digits == 0 || !sc.blanks() {
		return 0, false
	}
	if year < 1969 {
		year += 1900
	}
	clock, ok := sc.clock()
	if !ok {
		return 0, false
	}
	sc.blanks()
	zone, ok := sc.zone()
	return midnight(year, month, day) + clock - zone, ok
}

// midnight returns the first second of a day in GMT. Days past the end of a month run into the next.
func midnight(year, month, day int) int64 {
	return time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Unix()
}
