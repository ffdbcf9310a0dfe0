// Package lenient reads numbers as Kyoto Tycoon reads them: from the beginning of a text up to the
// first byte that does not belong to a number. No text is an error. Clients rely on that: "12abc"
// is 12, and "abc" is 0.
package lenient

import (
	"math"
	"strconv"
)

// Int returns the integer at the beginning of text: blanks, a sign, digits. It wraps around at
// 64 bits. Without digits it is 0.
func Int[T string | []byte](text T) int64 {
	negative, text := sign(skipBlanks(text))
	var n int64
	for i := 0; i < len(text) && isDigit(text[i]); i++ {
		n = n*10 + int64(text[i]-'0')
	}
	if negative {
		return -n
	}
	return n
}

// Natural returns the digits at the beginning of text as a number, which wraps around at 64 bits.
// ok is false where text does not begin with a digit.
func Natural(text []byte) (n int64, ok bool) {
	if len(text) == 0 || !isDigit(text[0]) {
		return 0, false
	}
	return Int(text), true
}

// significantDigits is how many digits of a number with a fraction count, leading zeros apart.
const significantDigits = 16

// Float returns the number at the beginning of text: blanks, a sign, and "inf", "nan", or digits
// with a fraction and an exponent. Without a number it is 0.
//
// Digits of a fraction behind the 16th significant one end the number, so that an exponent behind
// them does not count.
func Float(text []byte) float64 {
	negative, text := sign(skipBlanks(text))
	f := magnitude(text)
	if negative {
		return -f
	}
	return f
}

func magnitude(text []byte) float64 {
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
		for i++; i < len(text) && isDigit(text[i]) && significant < significantDigits; i++ {
			significant++
			num = append(num, text[i])
		}
	}
	if i < len(text) && text[i]|0x20 == 'e' {
		num = append(num, 'e')
		num = strconv.AppendInt(num, Int(text[i+1:]), 10)
	}
	f, _ := strconv.ParseFloat(string(num), 64) // the only possible error is a range error, with the right f
	return f
}

// skipBlanks removes spaces and control bytes in front of a number. A NUL ends a text.
func skipBlanks[T string | []byte](text T) T {
	for len(text) > 0 && text[0] > 0 && text[0] <= ' ' {
		text = text[1:]
	}
	return text
}

func sign[T string | []byte](text T) (negative bool, rest T) {
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		return text[0] == '-', text[1:]
	}
	return false, text
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// startsWith reports whether text begins with word, which is in lower case, in any case.
func startsWith(text []byte, word string) bool {
	if len(text) < len(word) {
		return false
	}
	for i := range len(word) {
		if text[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}
