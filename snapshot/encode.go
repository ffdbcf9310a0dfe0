package snapshot

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// encoder compresses one block after the other into a buffer. begin starts a block, Write takes raw
// bytes, finish ends the block.
type encoder interface {
	io.Writer
	begin(out *bytes.Buffer) error
	finish() error
}

const (
	deflateLevel = 6
	blockWindow  = 1 << 20 // how far back compressors look; blocks are hardly longer
)

// newEncoder returns the encoder of a compressor that is not Plain.
func newEncoder(c Compressor) (encoder, error) {
	switch c {
	case Zlib:
		w, err := flate.NewWriter(io.Discard, deflateLevel)
		return &deflateEncoder{Writer: w}, err
	case LZO:
		return &literalEncoder{}, nil
	case LZMA:
		return &xzEncoder{}, nil
	case Zstd:
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(blockWindow), zstd.WithLowerEncoderMem(true))
		return &streamEncoder{w}, err
	case S2:
		return &streamEncoder{s2.NewWriter(nil, s2.WriterConcurrency(1), s2.WriterBlockSize(blockWindow))}, nil
	}
	return nil, ErrCompressor
}

// streamEncoder compresses each block to a stream with checksums.
type streamEncoder struct{ resettable }

type resettable interface {
	io.WriteCloser
	Reset(w io.Writer)
}

func (e *streamEncoder) begin(out *bytes.Buffer) error { e.Reset(out); return nil }
func (e *streamEncoder) finish() error                 { return e.Close() }

// deflateEncoder writes a zero byte behind each block, as the original does.
type deflateEncoder struct {
	*flate.Writer
	out *bytes.Buffer
}

func (e *deflateEncoder) begin(out *bytes.Buffer) error {
	e.out = out
	e.Reset(out)
	return nil
}

func (e *deflateEncoder) finish() error {
	err := e.Close()
	e.out.WriteByte(0)
	return err
}

// xzEncoder compresses each block to an .xz stream without checksums. A writer of the library makes
// one stream only.
type xzEncoder struct{ *xz.Writer }

func (e *xzEncoder) begin(out *bytes.Buffer) (err error) {
	e.Writer, err = xz.WriterConfig{DictCap: blockWindow, NoCheckSum: true}.NewWriter(out)
	return err
}

func (e *xzEncoder) finish() error { return e.Close() }

// literalEncoder writes LZO blocks that are one run of literals, that is, without compression.
type literalEncoder struct {
	raw []byte
	out *bytes.Buffer
}

func (e *literalEncoder) begin(out *bytes.Buffer) error {
	e.raw, e.out = e.raw[:0], out
	return nil
}

// Write collects raw bytes. They are written by finish, since their number comes first.
func (e *literalEncoder) Write(p []byte) (int, error) {
	e.raw = append(e.raw, p...)
	return len(p), nil
}

const (
	lzoShort  = 238 // longest run of literals whose length is in the first byte
	lzoBase   = 17
	lzoNibble = 15 // a longer run has its length, less 3 and lzoNibble, in further bytes
	lzoEnd    = "\x11\x00\x00"
)

func (e *literalEncoder) finish() error {
	e.out.Grow(len(e.raw) + len(e.raw)/255 + 8)
	if n := len(e.raw); n <= lzoShort {
		e.out.WriteByte(byte(lzoBase + n))
	} else {
		e.out.WriteByte(0)
		rest := n - 3 - lzoNibble
		for ; rest > 255; rest -= 255 {
			e.out.WriteByte(0)
		}
		e.out.WriteByte(byte(rest))
	}
	e.out.Write(e.raw)
	e.out.WriteString(lzoEnd)
	return nil
}
