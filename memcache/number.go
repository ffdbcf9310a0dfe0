package memcache

import (
	"math"
	"strconv"
	"strings"

	"gotycoon/internal/lenient"
)

// leadingInt reads the number at the beginning of text as the original does. Unlike numbers in
// HTTP requests, stored values may have NULs in front of the number.
func leadingInt(text []byte) int64 {
	const safe = 18 // digits that cannot exceed 64 bits
	if len(text) <= safe {
		if n, ok := unsigned(text); ok {
			return int64(n)
		}
	}
	for len(text) > 0 && isBlank(text[0]) {
		text = text[1:]
	}
	return lenient.Int(text)
}

// leadingFloat reads a decimal fraction with blanks before and anything behind it; 0 without one.
func leadingFloat(text string) float64 {
	text = strings.TrimLeft(text, " \t")
	end := 0
	for end < len(text) && strings.IndexByte("+-.0123456789", text[end]) >= 0 {
		end++
	}
	for ; end > 0; end-- {
		if n, err := strconv.ParseFloat(text[:end], 64); err == nil {
			return n
		}
	}
	return 0
}

// unsigned reads a decimal number as memcached does: text must have nothing but digits.
func unsigned(text []byte) (n uint64, ok bool) {
	if len(text) == 0 {
		return 0, false
	}
	for _, b := range text {
		digit := uint64(b - '0')
		if b < '0' || b > '9' || n > (math.MaxUint64-digit)/10 {
			return 0, false
		}
		n = n*10 + digit
	}
	return n, true
}

// counter reads the number in a stored value. Blanks around the number are ignored, and an empty
// value is 0.
func counter(data []byte) (n uint64, ok bool) {
	for len(data) > 0 && isBlank(data[0]) {
		data = data[1:]
	}
	for len(data) > 0 && isBlank(data[len(data)-1]) {
		data = data[:len(data)-1]
	}
	if len(data) == 0 {
		return 0, true
	}
	return unsigned(data)
}

// isBlank reports whether a byte separates words.
func isBlank(b byte) bool { return b <= ' ' }
