package tsv

import "bytes"

// DecodeColumn decodes text in place and returns the result, a slice of text except for Base64 without its
// padding, which may need a new one. Raw text is returned as it is.
func DecodeColumn(text []byte, e Encoding) []byte {
	switch e {
	case Base64:
		return decodeBase64(text)
	case Quoted:
		return decodeQuoted(text)
	case URL:
		return DecodeURL(text)
	}
	return text
}

// DecodeURL decodes percent escapes and plus signs in place, by the lenient rules of the original: a digit that is
// none is passed over, an escape cut off by the end is dropped, so are blanks and control bytes. Bytes from 0x80 are
// kept: the original drops them, which turns different names into equal ones.
func DecodeURL(text []byte) []byte {
	text = untilNUL(text)
	r := plainPrefix(text)
	if r == len(text) {
		return text
	}
	w := r
	for r < len(text) {
		c := text[r]
		switch {
		case c == '%':
			if r+2 >= len(text) {
				return text[:w]
			}
			text[w] = hexPair(text[r+1], text[r+2])
			w++
			r += 2
		case c == '+':
			text[w] = ' '
			w++
		case c > ' ' && c != 0x7f:
			text[w] = c
			w++
		}
		r++
	}
	return text[:w]
}

// hexPair returns the byte of an escape. A character that is no digit is passed over: "%4g" is 4.
func hexPair(high, low byte) byte {
	h, l := hexDigit[high], hexDigit[low]
	switch {
	case h == notHex && l == notHex:
		return 0
	case h == notHex:
		return l
	case l == notHex:
		return h
	}
	return h<<4 | l
}

// plainPrefix returns the length of the part of text that DecodeURL leaves alone.
func plainPrefix(text []byte) int {
	for i, c := range text {
		if c == '%' || c == '+' || c <= ' ' || c == 0x7f {
			return i
		}
	}
	return len(text)
}

// decodeQuoted decodes quoted-printable text in place, as leniently as DecodeURL.
func decodeQuoted(text []byte) []byte {
	text = untilNUL(text)
	w := 0
	for r := 0; r < len(text); r++ {
		c := text[r]
		switch {
		case c == '=':
			rest := text[r+1:]
			switch {
			case bytes.HasPrefix(rest, []byte("\r\n")):
				r += 2
			case bytes.HasPrefix(rest, []byte("\n")):
				r++
			case len(rest) < 2:
				return text[:w]
			default:
				text[w] = hexPair(rest[0], rest[1])
				w++
				r += 2
			}
		case c >= ' ' && c != 0x7f:
			text[w] = c
			w++
		}
	}
	return text[:w]
}

// decodeBase64 decodes in place. Bytes outside the alphabet are skipped, and a group with padding is the last.
// A last group that is short of padding gives three bytes with its bits at the low end, as in the original.
func decodeBase64(text []byte) []byte {
	out := text[:0:len(text)] // an unpadded group may write past the end: then append moves the result elsewhere
	var bits uint32
	digits, pads := 0, 0
	for _, c := range text {
		d := base64Digit[c]
		switch {
		case d != notBase64:
			bits = bits<<6 | uint32(d)
		case c == '=':
			bits <<= 6
			pads++
		case c == 0:
			return appendGroup(out, bits, digits, pads)
		default:
			continue
		}
		digits++
		if digits < 4 {
			continue
		}
		out = appendGroup(out, bits, digits, pads)
		if pads > 0 {
			return out
		}
		bits, digits = 0, 0
	}
	return appendGroup(out, bits, digits, pads)
}

func appendGroup(out []byte, bits uint32, digits, pads int) []byte {
	b := [3]byte{byte(bits >> 16), byte(bits >> 8), byte(bits)}
	if digits == 0 || pads >= len(b) {
		return out
	}
	return append(out, b[:len(b)-pads]...)
}
