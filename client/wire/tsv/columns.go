package tsv

import (
	"bytes"
)

// Encoding is how the columns of a table are written.
type Encoding byte

// The encodings. Quoted is only ever read, never chosen for writing.
const (
	Raw    Encoding = 0
	Base64 Encoding = 'B'
	Quoted Encoding = 'Q'
	URL    Encoding = 'U'
)

// decodeColumns decodes every column. The rows are sorted first, because among encoded names that
// mean the same name the last one in order wins.
func (r *Rows) decodeColumns(e Encoding) {
	if !r.increasing() {
		r.order()
	}
	for part := range r.parts() {
		for i := range part {
			row := &part[i]
			row.Name = DecodeColumn(row.Name, e)
			row.Value = DecodeColumn(row.Value, e)
		}
	}
}

// DecodeColumn decodes text in place and returns the result. The result is a slice of text, but for
// Base64 without its padding, which may need more room. Raw text is returned as it is.
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

// notHex marks bytes that are no hexadecimal digits in hexDigit.
const notHex = 0xff

// hexDigit gives the value of a hexadecimal digit.
var hexDigit = hexDigits()

func hexDigits() (t [256]byte) {
	for i := range t {
		t[i] = notHex
	}
	for i := range byte(10) {
		t['0'+i] = i
	}
	for i := range byte(6) {
		t['a'+i], t['A'+i] = 10+i, 10+i
	}
	return t
}

// decodeBase64 decodes in place. Bytes outside the alphabet are skipped, and a group with padding
// is the last one. A last group with too little padding gives three bytes with its bits at the low
// end, as in the original.
func decodeBase64(text []byte) []byte {
	// An unpadded group may need more room than text has. The capacity ends with text, so that
	// append moves the result then, and does not overwrite what follows in the buffer.
	out := text[:0:len(text)]
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

// notBase64 marks bytes outside the alphabet in base64Digit.
const notBase64 = 0xff

// base64Digit gives the value of a byte of the Base64 alphabet.
var base64Digit = base64Digits()

const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

func base64Digits() (t [256]byte) {
	for i := range t {
		t[i] = notBase64
	}
	for i := range len(base64Alphabet) {
		t[base64Alphabet[i]] = byte(i)
	}
	return t
}
