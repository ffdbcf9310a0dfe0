package script

import (
	"errors"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"gotycoon/internal/lenient"
)

// numberText returns a number as the language writes it, which is %.14g of C.
func numberText(f float64) string {
	if n := int64(f); float64(n) == f && n > -1e14 && n < 1e14 && (n != 0 || !math.Signbit(f)) {
		return strconv.FormatInt(n, 10)
	}
	if s, special := specialText(f); special {
		return s
	}
	return strconv.FormatFloat(f, 'g', 14, 64)
}

// specialText returns how C writes infinity and NaN. ok is false for any other number.
func specialText(f float64) (string, bool) {
	sign := ""
	if math.Signbit(f) {
		sign = "-"
	}
	switch {
	case math.IsNaN(f):
		return sign + "nan", true
	case math.IsInf(f, 0):
		return sign + "inf", true
	}
	return "", false
}

// bulkText returns a number as the tables of set_bulk, arraydump, mapdump and the output write it:
// a whole number as a 64-bit integer, any other number with six decimals.
func bulkText(f float64) string {
	if math.Floor(f) == f {
		return strconv.FormatInt(cInt64(f), 10)
	}
	if s, special := specialText(f); special {
		return s
	}
	return strconv.FormatFloat(f, 'f', 6, 64)
}

// cInt64 converts a number to a 64-bit integer as the original's processor does: a number out of
// range becomes the least integer.
func cInt64(f float64) int64 {
	if f >= -1<<63 && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}

// text returns the text of a string or number. ok is false for other values.
func text(v lua.LValue) (s string, ok bool) {
	switch v := v.(type) {
	case lua.LString:
		return string(v), true
	case lua.LNumber:
		return numberText(float64(v)), true
	}
	return "", false
}

// bulkValue is text with the numbers of bulkText.
func bulkValue(v lua.LValue) (s string, ok bool) {
	if n, isNumber := v.(lua.LNumber); isNumber {
		return bulkText(float64(n)), true
	}
	return text(v)
}

// number returns the value of a number or numeric text. ok is false for other values.
func number(v lua.LValue) (f float64, ok bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		return parseNumber(string(v))
	}
	return 0, false
}

const cSpace = " \t\n\v\f\r"

// parseNumber reads a text that is a number between blanks: decimal, hexadecimal, inf or nan, as
// strtod of C.
func parseNumber(s string) (f float64, ok bool) {
	s = strings.Trim(s, cSpace)
	if s == "" || strings.ContainsRune(s, '_') {
		return 0, false
	}
	if f, whole := smallInteger(s); whole {
		return f, true
	}
	digits := strings.ToLower(strings.TrimLeft(s, "+-"))
	if len(s)-len(digits) > 1 {
		return 0, false
	}
	if strings.HasPrefix(digits, "0x") && !strings.ContainsRune(digits, 'p') {
		s += "p0"
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || errors.Is(err, strconv.ErrRange)
}

// smallInteger reads the most frequent numbers: up to 15 digits.
func smallInteger(s string) (f float64, ok bool) {
	if len(s) > 15 {
		return 0, false
	}
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return float64(n), true
}

// parseBase reads an integer in a base from 2 to 36. As strtoul of C, it wraps around below zero
// and saturates.
func parseBase(s string, base int) (f float64, ok bool) {
	s = strings.Trim(s, cSpace)
	digits, negative := strings.CutPrefix(s, "-")
	if !negative {
		digits, _ = strings.CutPrefix(s, "+")
	}
	if lower := strings.ToLower(digits); base == 16 && strings.HasPrefix(lower, "0x") {
		digits = digits[2:]
	}
	n, err := strconv.ParseUint(digits, base, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || strings.ContainsRune(digits, '_') {
		return 0, false
	}
	if negative && err == nil {
		n = -n
	}
	return float64(n), true
}

// atof reads a number as the original does: a sign, and inf or nan with anything behind it, or
// digits, fraction and exponent.
func atof(s string) float64 {
	s = strings.TrimLeft(s, spaces)
	sign := 1.0
	switch {
	case strings.HasPrefix(s, "-"):
		sign, s = -1, s[1:]
	case strings.HasPrefix(s, "+"):
		s = s[1:]
	}
	switch lower := strings.ToLower(s[:min(len(s), 3)]); lower {
	case "inf":
		return math.Inf(int(sign))
	case "nan":
		return math.NaN()
	}
	return sign * magnitudeOf(s)
}

// floatDigits is how many significant digits count in a number with a fraction.
const floatDigits = 16

// magnitudeOf reads digits, fraction and exponent.
func magnitudeOf(s string) float64 {
	num := []byte{'0'}
	i, significant := 0, 0
	for ; i < len(s) && isDigit(s[i]); i++ {
		if significant > 0 || s[i] != '0' {
			significant++
		}
		num = append(num, s[i])
	}
	if i < len(s) && s[i] == '.' {
		num = append(num, '.')
		for i++; i < len(s) && isDigit(s[i]); i++ {
			if significant < floatDigits {
				significant++
				num = append(num, s[i])
			}
		}
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		num = strconv.AppendInt(append(num, 'e'), atoi(s[i+1:]), 10)
	}
	f, _ := strconv.ParseFloat(string(num), 64) // out of range it returns an infinity, as it should
	return f
}

// spaces are the characters that the original skips in front of a number.
const spaces = "\x01\x02\x03\x04\x05\x06\x07\x08\t\n\v\f\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f \x7f"

// atoi reads sign and digits as the original does. It wraps around at 64 bits.
func atoi(s string) int64 { return lenient.Int(strings.TrimLeft(s, spaces)) }

func leadingSign(s string) (sign int64, rest string) {
	s = strings.TrimLeft(s, spaces)
	switch {
	case strings.HasPrefix(s, "-"):
		return -1, s[1:]
	case strings.HasPrefix(s, "+"):
		return 1, s[1:]
	}
	return 1, s
}

// atoix reads a number as the original does: a fraction is allowed, and a suffix K, M, G, T, P or E
// means a power of 1024. It saturates.
func atoix(s string) int64 {
	sign, s := leadingSign(s)
	f := 0.0
	for ; s != "" && isDigit(s[0]); s = s[1:] {
		f = f*10 + float64(s[0]-'0')
	}
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		for base := 10.0; s != "" && isDigit(s[0]); s, base = s[1:], base*10 {
			f += float64(s[0]-'0') / base
		}
	}
	if s != "" {
		if power := strings.IndexByte("KMGTPE", s[0]&^0x20); power >= 0 {
			f *= math.Pow(1024, float64(power+1))
		}
	}
	f *= float64(sign)
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(f)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
