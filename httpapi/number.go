package httpapi

import (
	"math"
	"strconv"
)

// parseInt reads the integer at the start of text (6.1): blanks, a sign, digits. It wraps around at 64 bits; without
// digits the result is 0.
func parseInt(text []byte) int64 {
	negative, text := sign(skipBlanks(text))
	var n int64
	for _, c := range text {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		return -n
	}
	return n
}

func skipBlanks(text []byte) []byte {
	for len(text) > 0 && text[0] > 0 && text[0] <= ' ' {
		text = text[1:]
	}
	return text
}

func sign(text []byte) (negative bool, rest []byte) {
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		return text[0] == '-', text[1:]
	}
	return false, text
}

// floatDigits is how many significant digits of a number with a fraction are used.
const floatDigits = 16

// parseFloat reads the number at the start of text (6.1). Without one the result is 0.
func parseFloat(text []byte) float64 {
	negative, text := sign(skipBlanks(text))
	f := parseMagnitude(text)
	if negative {
		return -f
	}
	return f
}

func parseMagnitude(text []byte) float64 {
	switch {
	case startsWith(text, "inf"):
		return math.Inf(1)
	case startsWith(text, "nan"):
		return math.NaN()
	}
	num := make([]byte, 1, 32)
	num[0] = '0'
	i, significant := 0, 0
	for ; i < len(text) && isDigit(text[i]); i++ {
		if significant > 0 || text[i] != '0' {
			significant++
		}
		num = append(num, text[i])
	}
	if i < len(text) && text[i] == '.' {
		num = append(num, '.')
		for i++; i < len(text) && isDigit(text[i]) && significant < floatDigits; i++ {
			significant++
			num = append(num, text[i])
		}
	}
	if i < len(text) && text[i]|0x20 == 'e' {
		num = append(num, 'e')
		num = strconv.AppendInt(num, parseInt(text[i+1:]), 10)
	}
	f, _ := strconv.ParseFloat(string(num), 64) // the only possible error is a range error, with the right f
	return f
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func startsWith(text []byte, word string) bool {
	return len(text) >= len(word) && equalFold(text[:len(word)], word)
}

// leadingNumber reads the digits at the start of text, which must begin with one.
func leadingNumber(text []byte) (n int64, ok bool) {
	if len(text) == 0 || !isDigit(text[0]) {
		return 0, false
	}
	return parseInt(text), true
}
