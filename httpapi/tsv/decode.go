package tsv

import "bytes"

// Decode adds the table in body to dst. contentType is the header of that name: it says whether
// body is a table, a form or something else, which adds nothing, and how the columns are encoded.
// An encoding applies to all rows of dst, those from a query string too: the original does so.
//
// Body is decoded in place and must not be changed while dst is used. dst.Err returns an error if
// there was no memory for all rows.
func Decode[T string | []byte](dst *Rows, body []byte, contentType T) {
	switch {
	case hasPrefixFold(contentType, TypeTSV):
		dst.parse(body)
		if e := encodingOf(contentType, len(TypeTSV)); e != Raw {
			dst.decodeColumns(e)
		}
	case hasPrefixFold(contentType, TypeForm):
		DecodeForm(dst, untilNUL(body))
	}
}

// parse adds the rows of a table as they are. Rows without a tab are ignored.
func (r *Rows) parse(body []byte) {
	for len(body) > 0 && r.err == nil {
		line := body
		if end := bytes.IndexByte(body, '\n'); end >= 0 {
			line, body = body[:end], body[end+1:]
			if end > 0 && line[end-1] == '\r' {
				line = line[:end-1]
			}
		} else {
			body = nil
		}
		if tab := bytes.IndexByte(line, '\t'); tab >= 0 {
			r.Add(line[:tab], line[tab+1:])
		}
	}
}

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

// DecodeForm adds the fields of a form or a query string to dst and decodes them in place. Fields
// are separated by '&' or ';'; a field without '=' has an empty value.
func DecodeForm(dst *Rows, text []byte) {
	for len(text) > 0 && dst.err == nil {
		field := text
		if end := bytes.IndexAny(text, "&;"); end >= 0 {
			field, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		field = trimLeft(field)
		if len(field) == 0 {
			continue
		}
		name, value, _ := bytes.Cut(field, []byte("="))
		dst.Add(DecodeURL(name), DecodeURL(value))
	}
}

// trimLeft removes leading blanks and control bytes.
func trimLeft(s []byte) []byte {
	for len(s) > 0 && s[0] > 0 && s[0] <= ' ' {
		s = s[1:]
	}
	return s
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

// DecodeURL decodes percent escapes and plus signs in place, by the lenient rules of the original:
// a character that is no digit is passed over, and an escape that the end cuts off is dropped, as
// are blanks and control bytes. Bytes from 0x80 on are kept. The original drops them, which turns
// different names into equal ones.
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
