package script

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"strings"
)

// ktCodec serves kt.codec(mode, text). A mode with ~ in front decodes; text that cannot be decoded
// gives nil.
func ktCodec(c call) int {
	mode, t := strings.ToLower(c.text(1)), c.text(2)
	name, decode := strings.CutPrefix(mode, "~")
	convert := encoders
	if decode {
		convert = decoders
	}
	out, ok := convert(c, name, []byte(t))
	if !ok {
		return c.pushNil()
	}
	return c.pushBytes(out)
}

func encoders(c call, name string, p []byte) ([]byte, bool) {
	switch name {
	case "url":
		return encodeURL(c, p), true
	case "base":
		return []byte(base64.StdEncoding.EncodeToString(p)), true
	case "quote":
		return encodeQuote(c, p), true
	case "hex":
		return []byte(hex.EncodeToString(p)), true
	case "zlib", "deflate", "gzip":
		return compress(c, name, p), true
	}
	return nil, false
}

func decoders(c call, name string, p []byte) ([]byte, bool) {
	switch name {
	case "url":
		return decodeURL(c, p), true
	case "base":
		return decodeBase(c, p), true
	case "quote":
		return decodeQuote(c, p), true
	case "hex":
		return decodeHex(c, p), true
	case "zlib", "deflate", "gzip":
		return decompress(c, name, p)
	}
	return nil, false
}

// compress packs p. The original's names mislead: its zlib is a deflate stream without a frame, and
// its deflate is the zlib format.
func compress(c call, name string, p []byte) []byte {
	var out bytes.Buffer
	var w io.WriteCloser
	switch name {
	case "zlib":
		w, _ = flate.NewWriter(&out, flate.DefaultCompression) // the level is valid
	case "deflate":
		w, _ = zlib.NewWriterLevel(&out, zlib.DefaultCompression)
	default:
		gz, _ := gzip.NewWriterLevel(&out, gzip.DefaultCompression)
		gz.OS = 3
		w = gz
	}
	const atOnce = 64 << 10 // bytes: less than 5 ms
	for len(p) > 0 {
		c.s.leash.work(c.l, stepsPerCheck)
		n := min(len(p), atOnce)
		_, _ = w.Write(p[:n]) // memory
		p = p[n:]
	}
	_ = w.Close()
	return out.Bytes()
}

func decompress(c call, name string, p []byte) ([]byte, bool) {
	var r io.Reader
	var err error
	switch name {
	case "zlib":
		r = flate.NewReader(bytes.NewReader(p))
	case "deflate":
		r, err = zlib.NewReader(bytes.NewReader(p))
	default:
		r, err = gzip.NewReader(bytes.NewReader(p))
	}
	if err != nil {
		return nil, false
	}
	var out bytes.Buffer
	for {
		n, err := io.CopyN(&out, r, 1<<20)
		c.s.leash.check(c.l)
		c.s.allow(c.l, float64(out.Len()))
		switch {
		case errors.Is(err, io.EOF):
			return out.Bytes(), true
		case err != nil || n == 0:
			return nil, false
		}
	}
}

const (
	lowerHex = "0123456789abcdef"
	upperHex = "0123456789ABCDEF"
)

func encodeURL(c call, p []byte) []byte {
	var out []byte
	for _, b := range p {
		c.s.leash.work(c.l, 1)
		if isLetter(b) || isDigit(b) || strings.IndexByte("_-.~", b) >= 0 {
			out = append(out, b)
		} else {
			out = append(out, '%', lowerHex[b>>4], lowerHex[b&15])
		}
	}
	return out
}

// digitOf returns the value of a hexadecimal digit. Any other character counts as 0.
func digitOf(b byte) byte {
	switch {
	case isDigit(b):
		return b - '0'
	case 'a' <= b|0x20 && b|0x20 <= 'f':
		return b | 0x20 - 'a' + 10
	}
	return 0
}

// decodeURL decodes percent encoding. As in the original, a % with fewer than two characters behind
// it ends the text.
func decodeURL(c call, p []byte) []byte {
	var out []byte
	for i := 0; i < len(p); i++ {
		c.s.leash.work(c.l, 1)
		switch {
		case p[i] == '+':
			out = append(out, ' ')
		case p[i] != '%':
			out = append(out, p[i])
		case i+2 < len(p):
			out = append(out, pairOf(p[i+1], p[i+2]))
			i += 2
		default:
			return out
		}
	}
	return out
}

func pairOf(high, low byte) byte { return digitOf(high)<<4 | digitOf(low) }

func encodeQuote(c call, p []byte) []byte {
	var out []byte
	for _, b := range p {
		c.s.leash.work(c.l, 1)
		if b == '=' || b < ' ' || b > '~' {
			out = append(out, '=', upperHex[b>>4], upperHex[b&15])
		} else {
			out = append(out, b)
		}
	}
	return out
}

func decodeQuote(c call, p []byte) []byte {
	var out []byte
	for i := 0; i < len(p); i++ {
		c.s.leash.work(c.l, 1)
		if p[i] != '=' {
			out = append(out, p[i])
			continue
		}
		switch rest := p[i+1:]; {
		case bytes.HasPrefix(rest, []byte("\r\n")):
			i += 2
		case bytes.HasPrefix(rest, []byte("\n")):
			i++
		case len(rest) >= 2:
			out = append(out, pairOf(rest[0], rest[1]))
			i += 2
		default:
			return out
		}
	}
	return out
}

// decodeHex makes a byte of each two characters. A character that is no digit adds nothing to its
// byte.
func decodeHex(c call, p []byte) []byte {
	var out []byte
	for ; len(p) > 0; p = p[min(2, len(p)):] {
		c.s.leash.work(c.l, 1)
		n := byte(0)
		for _, b := range p[:min(2, len(p))] {
			if isDigit(b) || 'a' <= b|0x20 && b|0x20 <= 'f' {
				n = n<<4 | digitOf(b)
			}
		}
		out = append(out, n)
	}
	return out
}

// decodeBase reads groups of four base64 digits and skips other characters. Each = takes one byte
// from its group. As in the original, a group that the end of the text cuts short gives three
// bytes, as if its digits were the last digits of a whole group.
func decodeBase(c call, p []byte) []byte {
	var out []byte
	for len(p) > 0 {
		n, count, missing := uint32(0), 0, 0
		for ; len(p) > 0 && count < 4; p = p[1:] {
			c.s.leash.work(c.l, 1)
			d, ok := baseDigit(p[0])
			switch {
			case p[0] == '=':
				missing++
			case !ok:
				continue
			}
			n = n<<6 | uint32(d)
			count++
		}
		if count == 0 {
			break
		}
		group := []byte{byte(n >> 16), byte(n >> 8), byte(n)}
		out = append(out, group[:max(3-missing, 0)]...)
	}
	return out
}

func baseDigit(b byte) (digit byte, ok bool) {
	switch {
	case 'A' <= b && b <= 'Z':
		return b - 'A', true
	case 'a' <= b && b <= 'z':
		return b - 'a' + 26, true
	case isDigit(b):
		return b - '0' + 52, true
	case b == '+':
		return 62, true
	case b == '/':
		return 63, true
	}
	return 0, false
}
