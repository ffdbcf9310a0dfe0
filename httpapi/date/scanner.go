package date

import (
	"bytes"
	"math"
)

// at returns byte i of text, 0 behind its end.
func at(text []byte, i int) byte {
	if i < len(text) {
		return text[i]
	}
	return 0
}

// next reports whether the first mark from position from on is at position want.
func next(text []byte, from int, mark byte, want int) bool {
	return len(text) > want && bytes.IndexByte(text[from:], mark) == want-from
}

// number reads an integer as the C library does: blanks, a sign, and digits up to the first other
// byte. Without digits it is 0. Like every part of a date it has 32 bits.
func number(text []byte) int {
	text = skipBlanks(text)
	sign := at(text, 0)
	if sign == '+' || sign == '-' {
		text = text[1:]
	}
	n, _ := digits(text)
	if sign == '-' {
		n = -n
	}
	return int(int32(n))
}

// digits reads a decimal number, which saturates, and returns what follows.
func digits(text []byte) (n int64, rest []byte) {
	for len(text) > 0 && isDigit(text[0]) {
		if d := int64(text[0] - '0'); n > (math.MaxInt64-d)/10 {
			n = math.MaxInt64
		} else {
			n = n*10 + d
		}
		text = text[1:]
	}
	return n, text
}

// hexNumber reads hexadecimal digits up to the first other byte. The number saturates.
func hexNumber(text []byte) int64 {
	var n int64
	for _, c := range text {
		d, ok := hexValue(c)
		if !ok {
			break
		}
		if n > math.MaxInt64>>4 {
			return math.MaxInt64
		}
		n = n<<4 | int64(d)
	}
	return n
}

func skipHexMark(text []byte) (rest []byte, ok bool) {
	if at(text, 0) != '0' || at(text, 1)|0x20 != 'x' {
		return text, false
	}
	return text[2:], true
}

// monthOf returns the number of the month whose English name's first three letters, of any case,
// text begins with; else 0.
func monthOf(text []byte) int {
	const names = "janfebmaraprmayjunjulaugsepoctnovdec"
	if len(text) < 3 {
		return 0
	}
	for i := 0; i < len(names); i += 3 {
		if bytes.EqualFold(text[:3], []byte(names[i:i+3])) {
			return i/3 + 1
		}
	}
	return 0
}

// hoursOf returns the offset from GMT, in hours, of a zone's name.
func hoursOf(name string) int {
	switch name {
	case "JST", "KST":
		return 9
	case "CCT":
		return 8
	case "EDT":
		return -4
	case "EST", "CDT":
		return -5
	case "CST", "MDT":
		return -6
	case "MST", "PDT":
		return -7
	case "PST":
		return -8
	case "HDT":
		return -9
	case "HST":
		return -10
	}
	return 0
}

func skip(text []byte, which func(byte) bool) []byte {
	for len(text) > 0 && which(text[0]) {
		text = text[1:]
	}
	return text
}

func skipBlanks(text []byte) []byte { return skip(text, isBlank) }

// isBlank reports whether c is a space or a control character, which numbers may begin with.
func isBlank(c byte) bool { return c > 0 && c <= ' ' }

func isSpace(c byte) bool { return c == ' ' }

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
