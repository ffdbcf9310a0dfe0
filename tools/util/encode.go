package util

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"gotycoon/client/wire/tsv"
	"gotycoon/tools/show"
)

// codec is an encoding or a compression.
type codec struct {
	option, help string
	text         bool // the encoded form is text, printed with a line feed
	encode       func(in []byte) ([]byte, error)
	decode       func(in []byte) ([]byte, error)
}

// codecs returns the codecs of enc. The first one is the default.
func codecs() []codec {
	return []codec{
		columns("b64", "Base64 (default)", tsv.Base64),
		columns("url", "URL encoding", tsv.URL),
		columns("quote", "quoted-printable", tsv.Quoted),
		{"hex", "hexadecimal digits", true, toHex, fromHex},
		{"deflate", "deflate, without header", false, packed(deflate), unpacked(inflate)},
		{"zlib", "zlib", false, packed(toZlib), unpacked(fromZlib)},
		{"gzip", "gzip", false, packed(toGzip), unpacked(fromGzip)},
		{"zstd", "Zstandard", false, packed(toZstd), unpacked(fromZstd)},
	}
}

// encode converts the input, or converts it back with -d.
func encode(_ context.Context, c *call) error {
	list := codecs()
	chosen := make([]*bool, len(list))
	for i, k := range list {
		chosen[i] = c.flags.Bool(k.option, false, k.help)
	}
	back := c.flags.Bool("d", false, "decode")
	if err := c.parse(0, 1); err != nil {
		return err
	}
	k, n := list[0], 0
	for i := range list {
		if *chosen[i] {
			k, n = list[i], n+1
		}
	}
	if n > 1 {
		return usageError("choose one encoding")
	}
	return c.convert(k, *back)
}

// hexadecimal is enc -hex under a name of its own.
func hexadecimal(_ context.Context, c *call) error {
	back := c.flags.Bool("d", false, "decode")
	if err := c.parse(0, 1); err != nil {
		return err
	}
	return c.convert(codec{text: true, encode: toHex, decode: fromHex}, *back)
}

// convert reads the input and writes the converted input.
func (c *call) convert(k codec, back bool) error {
	in, err := c.input()
	if err != nil {
		return err
	}
	f := k.encode
	if back {
		f = k.decode
	}
	out, err := f(in)
	if err != nil {
		return err
	}
	if k.text && !back {
		out = append(out, '\n')
	}
	_, err = c.out.Write(out)
	return err
}

// columns returns the codec of a column encoding. Base64 with line ends in it can be decoded too.
func columns(option, help string, e tsv.Encoding) codec {
	return codec{option, help, true,
		func(in []byte) ([]byte, error) { return encoded(in, e), nil },
		func(in []byte) ([]byte, error) { return tsv.DecodeColumn(bytes.TrimRight(in, "\r\n"), e), nil }}
}

func toHex(in []byte) ([]byte, error) { return fmt.Appendf(nil, "%x", in), nil }

func fromHex(in []byte) ([]byte, error) { return show.DecodeHex(string(in)), nil }

// packed makes a function of a compressing writer.
func packed(open func(io.Writer) (io.WriteCloser, error)) func([]byte) ([]byte, error) {
	return func(in []byte) ([]byte, error) {
		var out bytes.Buffer
		w, err := open(&out)
		if err != nil {
			return nil, err
		}
		_, err = w.Write(in)
		err = errors.Join(err, w.Close())
		return out.Bytes(), err
	}
}

// unpacked makes a function of a decompressing reader.
func unpacked(open func(io.Reader) (io.ReadCloser, error)) func([]byte) ([]byte, error) {
	return func(in []byte) ([]byte, error) {
		r, err := open(bytes.NewReader(in))
		if err != nil {
			return nil, fmt.Errorf("decode: %w", err)
		}
		out, err := io.ReadAll(r)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("decode: %w", err), r.Close())
		}
		return out, r.Close()
	}
}

func deflate(w io.Writer) (io.WriteCloser, error) {
	return flate.NewWriter(w, flate.DefaultCompression)
}

func inflate(r io.Reader) (io.ReadCloser, error) { return flate.NewReader(r), nil }

func toZlib(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil }

func fromZlib(r io.Reader) (io.ReadCloser, error) { return zlib.NewReader(r) }

func toGzip(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil }

func fromGzip(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }

func toZstd(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }

func fromZstd(r io.Reader) (io.ReadCloser, error) {
	z, err := zstd.NewReader(r)
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}
