package script

import (
	"math"
	"strconv"
	"strings"

	"gotycoon/internal/lenient"
)

// atof of the original: "inf", "-inf", "nan" at the beginning, else sign, digits, fraction, exponent.
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

// floatDigits is how many significant digits of a number with a fraction count.
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
	f, _ := strconv.ParseFloat(string(num), 64) // out of range is as it should be
	return f
}

// spaces is what the original skips before numbers.
const spaces = "\x01\x02\x03\x04\x05\x06\x07\x08\t\n\v\f\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f \x7f"

// atoi of the original: sign and digits; it goes round at 64 bits.
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

// atoix of the original: a number that may have a fraction and end in K, M, G, T, P or E for powers of 1024; it saturates.
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
