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
	// begin starts with a block; what it allocates does not depend on what a damaged block says.
	begin(block *bytes.Reader) error
}

const (
	maxWindow = 64 << 20 // memory that a block may ask for; the original's blocks ask for 8 MiB
	maxBlock  = 2 << 30  // raw size of an LZO block: that of the largest record, and some
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

// deflateDecoder accepts blocks with and without the zero byte behind them.
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

// xzDecoder reads .xz streams that do not ask for too much memory.
type xzDecoder struct{ *xz.Reader }

func (d *xzDecoder) begin(block *bytes.Reader) (err error) {
	head := make([]byte, min(64, block.Len()))
	_, _ = block.ReadAt(head, 0) // there are as many
	if need := xzDictionary(head); need > maxWindow {
		return fmt.Errorf("it asks for %d bytes of memory", need)
	}
	d.Reader, err = xz.ReaderConfig{DictCap: lzma.MinDictCap, SingleStream: true}.NewReader(block)
	return err
}

// xzDictionary returns the size of the dictionary that the first block header of an .xz stream asks for, 0 where it cannot be found:
// flags, up to two varnums of another kind, filter 21, size 1, and the byte that stands for it.
func xzDictionary(head []byte) int64 {
	const at, sizes = 13, 0xc0 // behind the stream header and the size of the block header
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
		return 0 // the library will say so
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
	_, _ = block.Read(in) // there are as many
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
		d.out = make([]byte, 2*len(d.out)) // it has been filled once already
	}
}

// bareDecoder takes a mark off.
type bareDecoder struct {
	mark string
	*bytes.Reader
}

func (d *bareDecoder) begin(block *bytes.Reader) error {
	for _, want := range []byte(d.mark) {
		if b, err := block.ReadByte(); err != nil || b != want {
			return errors.New("its mark is missing")
		}
	}
	d.Reader = block
	return nil
}

// blocks is the raw bytes of compressed blocks, one after the other.
type blocks struct {
	src  *counter
	dec  decoder
	data bytes.Buffer // compressed block under way
	left *bytes.Reader
	at   int64 // offset of the block under way
	open bool
}

// Read reads raw bytes of the next block where one has ended. io.EOF is at the end of the file only.
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

// next begins a block. io.EOF says that there is none.
func (b *blocks) next() error {
	var head [4]byte
	if n, err := io.ReadFull(b.src, head[:]); n == 0 {
		return err
	} else if err != nil {
		return cut(err, errCutBlock)
	}
	size := int64(binary.BigEndian.Uint32(head[:]))
	b.data.Reset()
	n, err := b.data.ReadFrom(io.LimitReader(b.src, size)) // grows with what is there
	if err == nil && n < size {
		err = errCutBlock
	}
	if err != nil {
		return err
	}
	b.left = bytes.NewReader(b.data.Bytes())
	return cut(b.dec.begin(b.left), errCutBlock)
}

// counter knows how far a file has been read.
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
