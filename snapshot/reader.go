package snapshot

import (
	"bufio"
	"errors"
	"io"
	"slices"

	"gotycoon/internal/vfs"
)

// MaxRecord is the size of the largest key or value that a Reader accepts, in bytes. Values are in
// stored form.
const MaxRecord = 1<<30 + 64

// Reader decodes a snapshot or a dump. It needs memory for the largest record only. It is for one
// goroutine.
type Reader struct {
	head  Header
	dump  bool
	mark  byte
	src   *counter
	in    io.Reader // raw bytes of records
	comp  *blocks   // in, if the records are compressed
	buf   []byte    // bytes read from in; [r:w] is not used yet
	r, w  int
	base  int64 // offset of buf in the raw bytes
	eof   bool
	inErr error // error of in; the bytes read before it are good
	count int64
	err   error // of the first Next that failed
	file  string
	f     vfs.File // opened by Open
}

const readSize = 256 << 10

// NewReader reads the header of a snapshot, or the first bytes of a dump. It reads ahead. Its
// errors are those of ReadHeader.
func NewReader(src io.Reader) (*Reader, error) {
	r := &Reader{src: &counter{r: bufio.NewReaderSize(src, readSize)}, buf: make([]byte, readSize)}
	if err := r.begin(); err != nil {
		return nil, err
	}
	return r, nil
}

// Open opens a snapshot or a dump. Errors of Open and Next name the file.
func Open(fs vfs.FS, path string) (*Reader, error) {
	f, err := fs.OpenFile(path, readOnly, 0)
	if err != nil {
		return nil, err
	}
	r, err := NewReader(io.NewSectionReader(f, 0, 1<<62))
	if err != nil {
		return nil, errors.Join(nameFile(path, err), f.Close())
	}
	r.f, r.file = f, path
	return r, nil
}

// ReadHeader reads the header of a snapshot. The error is a *DamageError with ErrNoSnapshot or
// ErrCompressor in it, or an error of src. With ErrCompressor all fields but Compressor are right.
func ReadHeader(src io.Reader) (Header, error) {
	b := make([]byte, headerSize)
	if _, err := io.ReadFull(src, b); err != nil {
		return Header{}, damaged(0, cut(err, ErrNoSnapshot))
	}
	h, err := parseHeader(b)
	return h, damaged(0, err)
}

// Header returns the header of a snapshot.
func (r *Reader) Header() Header { return r.head }

// Dump reports whether the file is a dump of the command line tools, which has no header.
func (r *Reader) Dump() bool { return r.dump }

// Count returns how many records Next has returned.
func (r *Reader) Count() int64 { return r.count }

// Offset returns how many bytes of the file have been read, to show progress.
func (r *Reader) Offset() int64 { return r.src.n }

// Close closes the file that Open has opened.
func (r *Reader) Close() error {
	if r.f == nil {
		return nil
	}
	return r.f.Close()
}

func (r *Reader) begin() error {
	first := make([]byte, len(magic))
	if _, err := io.ReadFull(r.src, first); err != nil {
		return damaged(0, cut(err, ErrNoSnapshot))
	}
	r.in, r.mark = r.src, recordMark
	if string(first) == dumpMagic {
		r.dump, r.mark = true, dumpRecordMark
		r.base = r.src.n
		return nil
	}
	rest := io.LimitReader(r.src, int64(headerSize-len(magic)))
	var err error
	if r.head, err = ReadHeader(io.MultiReader(bytesReader(first), rest)); err != nil {
		return err
	}
	r.base = r.src.n
	if r.head.Compressor == Plain {
		return nil
	}
	dec, err := newDecoder(r.head.Compressor)
	r.comp = &blocks{src: r.src, dec: dec}
	r.in = r.comp
	return err
}

// Next returns the next record, with the value in stored form. The error is io.EOF at the end, a
// *DamageError, or an error of reading. The slices are valid until the next call.
func (r *Reader) Next() (key, value []byte, err error) {
	if r.err == nil {
		key, value, r.err = r.record()
	}
	if r.err != nil {
		return nil, nil, r.err
	}
	r.count++
	return key, value, nil
}

func (r *Reader) record() (key, value []byte, err error) {
	at := r.place()
	ksize, vsize, head, err := r.recordHead()
	if errors.Is(err, io.EOF) {
		return nil, nil, io.EOF
	}
	var b []byte
	if err == nil {
		if b = r.peek(head + ksize + vsize); len(b) < head+ksize+vsize {
			err = r.short()
		}
	}
	if err != nil {
		return nil, nil, nameFile(r.file, damaged(at, err))
	}
	r.r += len(b)
	b = b[head:]
	return b[:ksize:ksize], b[ksize:], nil
}

// recordHead decodes the sizes of the next record. io.EOF means that there are no more records.
func (r *Reader) recordHead() (ksize, vsize, head int, err error) {
	const longest = 1 + 2*maxVarnum
	b := r.peek(longest)
	switch {
	case len(b) == 0 && r.inErr != nil:
		return 0, 0, 0, r.inErr
	case len(b) == 0 && r.dump:
		return 0, 0, 0, errNoEnd
	case len(b) == 0:
		return 0, 0, 0, io.EOF
	case r.dump && b[0] == dumpEndMark:
		return 0, 0, 0, io.EOF
	case b[0] != r.mark:
		return 0, 0, 0, errMark
	}
	k, n := varnum(b[1:])
	if n <= 0 || k > MaxRecord {
		return 0, 0, 0, r.badSize(n)
	}
	v, m := varnum(b[1+n:])
	if m <= 0 || v > MaxRecord {
		return 0, 0, 0, r.badSize(m)
	}
	return int(k), int(v), 1 + n + m, nil
}

// badSize returns the error of a size for which varnum has returned n.
func (r *Reader) badSize(n int) error {
	if n == 0 {
		return r.short()
	}
	return errSize
}

// short returns the error of a record that is not complete.
func (r *Reader) short() error {
	if r.inErr != nil {
		return r.inErr
	}
	return errCut
}

// peek returns the next n bytes without using them, or fewer at the end of the file or before an
// error. The buffer grows with the data that are there, not with the sizes that a damaged record
// claims.
func (r *Reader) peek(n int) []byte {
	for r.w-r.r < n && !r.eof && r.inErr == nil {
		r.fill(n)
	}
	return r.buf[r.r:min(r.r+n, r.w)]
}

// fill reads once from in; the caller wants n bytes behind r.r.
func (r *Reader) fill(n int) {
	if r.r > 0 && r.r+n > len(r.buf) {
		r.base += int64(r.r)
		r.w = copy(r.buf, r.buf[r.r:r.w])
		r.r = 0
	}
	if r.w == len(r.buf) {
		r.buf = slices.Grow(r.buf, len(r.buf))
		r.buf = r.buf[:cap(r.buf)]
	}
	got, err := r.in.Read(r.buf[r.w:])
	r.w += got
	if errors.Is(err, io.EOF) {
		r.eof = true
	} else {
		r.inErr = err
	}
}

// place returns the offset in the file of the next record, or of the block that holds it.
func (r *Reader) place() int64 {
	if r.comp != nil {
		return r.comp.at
	}
	return r.base + int64(r.r)
}
