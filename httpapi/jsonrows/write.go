package jsonrows

import (
	"encoding/base64"
	"unicode/utf8"
)

// Piece is about how many bytes a Writer gathers: a multiple of three, of which Base64 makes four
// letters.
const Piece = 48 << 10

// A Writer writes JSON in pieces, so that a large reply never is in memory as a whole.
type Writer struct {
	Buf []byte // what has been written and not been taken

	// Full takes Buf, when it has Piece bytes or more, and returns room for more. After an error
	// nothing is written any more.
	Full func(buf []byte) ([]byte, error)

	err error
}

// Err returns the error of Full.
func (w *Writer) Err() error { return w.err }

// Raw writes text as it is.
func (w *Writer) Raw(text string) {
	w.Buf = append(w.Buf, text...)
	w.pass()
}

// pass hands Buf on if much has gathered.
func (w *Writer) pass() {
	if w.err != nil {
		w.Buf = w.Buf[:0]
	} else if len(w.Buf) >= Piece {
		w.Buf, w.err = w.Full(w.Buf)
	}
}

// Bytes writes a string, or {"base64": …} where b is no UTF-8.
func (w *Writer) Bytes(b []byte) {
	if utf8.Valid(b) {
		w.Text(b)
		return
	}
	w.Raw(`{"base64":"`)
	for len(b) > Piece {
		w.Buf = base64.StdEncoding.AppendEncode(w.Buf, b[:Piece])
		b = b[Piece:]
		w.pass()
	}
	w.Buf = base64.StdEncoding.AppendEncode(w.Buf, b)
	w.Raw(`"}`)
}

// Text writes a string. Bytes that are no UTF-8 become U+FFFD.
func (w *Writer) Text(text []byte) {
	w.Buf = append(w.Buf, '"')
	for len(text) > 0 {
		n := min(len(text), Piece)
		for n < len(text) && n > Piece-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		w.Buf = appendEscaped(w.Buf, text[:n])
		text = text[n:]
		w.pass()
	}
	w.Raw(`"`)
}

const hexDigits = "0123456789abcdef"

// appendEscaped appends text as the inside of a string of JSON.
func appendEscaped(dst, text []byte) []byte {
	for len(text) > 0 {
		c := text[0]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(text)
			dst = utf8.AppendRune(dst, r)
			text = text[size:]
			continue
		}
		switch text = text[1:]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			if c >= ' ' && c != 0x7f {
				dst = append(dst, c)
			} else {
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
		}
	}
	return dst
}
