package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/anchore/go-lzo"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
)

// decoder reads the raw bytes of one compressed block.
type decoder interface {
	io.Reader
	// begin starts a block. A damaged block must not make it allocate what the block claims to
	// need.
	begin(block *bytes.Reader) error
}

const (
	maxWindow = 64 << 20 // memory that a block may claim; the original's blocks claim 8 MiB
	maxBlock  = 2 << 30  // limit of an LZO block's raw size: more than the largest record
)

// newDecoder returns the decoder of a compressor that is not Plain.
func newDecoder(c Compressor) (decoder, error) {
	switch c {
	case Zlib:
		return &deflateDecoder{}, nil
	case LZO:
		return &lzoDecoder{}, nil
	case LZMA:
		return &xzDecoder{}, nil
	case Zstd:
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		return zstdDecoder{r}, err
	case S2:
		return s2Decoder{s2.NewReader(nil)}, nil
	case bareLZMA:
		return &bareDecoder{mark: "x\x00"}, nil
	case bareLZO:
		return &bareDecoder{mark: "o\x00"}, nil
	case bareZlib:
		return &bareDecoder{mark: "z\x00"}, nil
	}
	return nil, ErrCompressor
}

type zstdDecoder struct{ *zstd.Decoder }

func (d zstdDecoder) begin(block *bytes.Reader) error { return d.Reset(block) }

type s2Decoder struct{ *s2.Reader }

func (d s2Decoder) begin(block *bytes.Reader) error { d.Reset(block); return nil }

// deflateDecoder accepts blocks with and without a zero byte behind them.
type deflateDecoder struct {
	flate io.ReadCloser
	block *bytes.Reader
}

func (d *deflateDecoder) begin(block *bytes.Reader) error {
	d.block = block
	if d.flate == nil {
		d.flate = flate.NewReader(block)
		return nil
	}
	return d.flate.(flate.Resetter).Reset(block, nil)
}

// Read reads raw bytes.
func (d *deflateDecoder) Read(p []byte) (int, error) {
	n, err := d.flate.Read(p)
	if errors.Is(err, io.EOF) && d.block.Len() > 0 {
		if b, _ := d.block.ReadByte(); b != 0 {
			_ = d.block.UnreadByte() // it was read just now
		}
	}
	return n, err
}

// xzDecoder reads .xz streams whose dictionary is at most maxWindow.
type xzDecoder struct{ *xz.Reader }

func (d *xzDecoder) begin(block *bytes.Reader) (err error) {
	head := make([]byte, min(64, block.Len()))
	_, _ = block.ReadAt(head, 0) // head is not longer than block
	if need := xzDictionary(head); need > maxWindow {
		return fmt.Errorf("the block asks for %d bytes of memory", need)
	}
	d.Reader, err = xz.ReaderConfig{DictCap: lzma.MinDictCap, SingleStream: true}.NewReader(block)
	return err
}

// xzDictionary returns the dictionary size in the first block header of an .xz stream, 0 if there
// is none. The block header has flags, up to two sizes as little-endian varnums, the filter's
// number 0x21, the length 1, and a byte for the dictionary size.
func xzDictionary(head []byte) int64 {
	const at, sizes = 13, 0xc0 // behind the stream header and the length of the block header
	if len(head) <= at {
		return 0
	}
	rest := head[at+1:]
	for flags := head[at] & sizes; flags != 0; flags &= flags - 1 {
		_, n := binary.Uvarint(rest)
		rest = rest[max(n, 0):]
	}
	if !bytes.HasPrefix(rest, []byte{0x21, 1}) || len(rest) < 3 {
		return 0
	}
	size, err := lzma.DecodeDictCap(rest[2])
	if err != nil {
		return 0 // the library will report it
	}
	return size
}

// lzoDecoder decompresses a block as a whole.
type lzoDecoder struct {
	out []byte
	bytes.Reader
}

func (d *lzoDecoder) begin(block *bytes.Reader) error {
	in := make([]byte, block.Len())
	_, _ = block.Read(in) // in is as long as block
	if d.out == nil {
		d.out = make([]byte, blockLimit*5/4)
	}
	for {
		n, err := lzo.Decompress(in, d.out)
		switch {
		case err == nil:
			d.Reset(d.out[:n])
			return nil
		case !errors.Is(err, lzo.ErrOutputOverrun) || len(d.out) >= maxBlock:
			return err
		}
		d.out = make([]byte, 2*len(d.out)) // the smaller buffer was filled, so the data exist
	}
}

// bareDecoder removes the two bytes in front of uncompressed records.
type bareDecoder struct {
	mark string
	*bytes.Reader
}

func (d *bareDecoder) begin(block *bytes.Reader) error {
	for _, want := range []byte(d.mark) {
		if b, err := block.ReadByte(); err != nil || b != want {
			return errors.New("the mark in front of the records is missing")
		}
	}
	d.Reader = block
	return nil
}

// blocks reads the raw bytes of all compressed blocks, one after the other.
type blocks struct {
	src  *counter
	dec  decoder
	data bytes.Buffer  // the present compressed block
	left *bytes.Reader // the part of data that dec has not read
	at   int64         // offset of the present block in the file
	open bool
}

// Read reads raw bytes, and begins the next block when one has ended. It returns io.EOF only at the
// end of the file.
func (b *blocks) Read(p []byte) (int, error) {
	for {
		if !b.open {
			at := b.src.n
			if err := b.next(); errors.Is(err, io.EOF) {
				return 0, io.EOF
			} else if err != nil {
				return 0, damaged(at, err)
			}
			b.at, b.open = at, true
		}
		n, err := b.dec.Read(p)
		if errors.Is(err, io.EOF) {
			b.open, err = false, nil
			if b.left.Len() > 0 {
				err = errBehind
			}
		}
		if n > 0 || err != nil {
			return n, damaged(b.at, err)
		}
	}
}

// next begins a block. It returns io.EOF if there is none.
func (b *blocks) next() error {
	var head [4]byte
	if n, err := io.ReadFull(b.src, head[:]); n == 0 {
		return err
	} else if err != nil {
		return cut(err, errCutBlock)
	}
	size := int64(binary.BigEndian.Uint32(head[:]))
	b.data.Reset()
	// The buffer grows with the data that are there, not with the size that a damaged block claims.
	n, err := b.data.ReadFrom(io.LimitReader(b.src, size))
	if err == nil && n < size {
		err = errCutBlock
	}
	if err != nil {
		return err
	}
	b.left = bytes.NewReader(b.data.Bytes())
	return cut(b.dec.begin(b.left), errCutBlock)
}

// counter counts the bytes read from a file.
type counter struct {
	r io.Reader
	n int64
}

// Read reads and counts.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
