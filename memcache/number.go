package memcache

import "math"

// isBlank tells whether a byte stands between words.
func isBlank(b byte) bool { return b <= ' ' }

// leadingInt reads a number as the original does: blanks and control characters, a sign, and digits up to the first other
// byte. Without digits it is 0; what is too large wraps.
func leadingInt(text []byte) int64 {
	for len(text) > 0 && isBlank(text[0]) {
		text = text[1:]
	}
	negative := false
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		negative, text = text[0] == '-', text[1:]
	}
	n := int64(0)
	for _, b := range text {
		if b < '0' || b > '9' {
			break
		}
		n = n*10 + int64(b-'0')
	}
	if negative {
		return -n
	}
	return n
}

// unsigned reads a decimal number that is all of text, as memcached does.
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

// counter reads the number in a stored value: blanks around it are fine, and an empty value is 0.
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
