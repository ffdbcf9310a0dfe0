package rebuild

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"gotycoon/db/filestore"
	"gotycoon/internal/vfs"
)

// write writes a sorted chunk to a file as
//
//	varint key size, varint 0: removed, or value size + 1; key, value
//
// for the last update of every key, and returns where it stands.
func (c *chunk) write(f vfs.File, off int64, buf []byte) (spill, error) {
	r := spill{off, off, c.number}
	for i, ref := range c.refs {
		if c.superseded(i) {
			continue
		}
		vsize := uint64(ref.vsize) + 1
		if ref.vsize == removed {
			vsize = 0
		}
		buf = binary.AppendUvarint(buf, uint64(ref.ksize))
		buf = binary.AppendUvarint(buf, vsize)
		buf = append(append(buf, c.key(ref)...), c.value(ref)...)
		if len(buf) >= spillBuffer-binary.MaxVarintLen64 {
			if _, err := f.WriteAt(buf, r.end); err != nil {
				return r, err
			}
			r.end += int64(len(buf))
			buf = buf[:0]
		}
	}
	_, err := f.WriteAt(buf, r.end)
	r.end += int64(len(buf))
	return r, err
}

// updates gives one update after another.
type updates interface {
	// next moves on to the next update.
	next() error
	current() *update
}

// An update is the last update of a key.
type update struct {
	key, value []byte // valid until next
	gone       bool   // the key is removed
	end        bool   // there is no update any more

	last  filestore.LastUpdate // of an entry of a run with noted
	noted bool
}

// A heldChunk is a sorted chunk as updates.
type heldChunk struct {
	*chunk
	at  int // the next ref
	now update
}

func (m *heldChunk) current() *update { return &m.now }

func (m *heldChunk) next() error {
	for m.at < len(m.refs) && m.superseded(m.at) {
		m.at++
	}
	if m.at == len(m.refs) {
		m.now = update{end: true}
		return nil
	}
	r := m.refs[m.at]
	m.at++
	m.now = update{key: m.key(r), value: m.value(r), gone: r.vsize == removed}
	return nil
}

// A fileSpill is a spill as updates.
type fileSpill struct {
	f vfs.File
	spill
	buf []byte // read and not consumed; the rest of the spill has not been read
	all []byte // the room that buf is in
	now update
}

var errCutShort = fmt.Errorf("read sorted records: %w", io.ErrUnexpectedEOF)

func (r *fileSpill) current() *update { return &r.now }

func (r *fileSpill) next() error {
	if len(r.buf) == 0 && r.off == r.end {
		r.now = update{end: true}
		return nil
	}
	if err := r.need(2 * binary.MaxVarintLen64); err != nil {
		return fmt.Errorf("read sorted records: %w", err)
	}
	ksize, n := binary.Uvarint(r.buf)
	vsize, m := binary.Uvarint(r.buf[max(n, 0):])
	if n <= 0 || m <= 0 {
		return errCutShort
	}
	r.now = update{gone: vsize == 0}
	if vsize > 0 {
		vsize--
	}
	size := n + m + int(ksize+vsize)
	if err := r.need(size); err != nil {
		return fmt.Errorf("read sorted records: %w", err)
	}
	if len(r.buf) < size {
		return errCutShort
	}
	body := r.buf[n+m : size]
	r.now.key, r.now.value = body[:ksize], body[ksize:]
	r.buf = r.buf[size:]
	return nil
}

// need reads until n bytes are there, or all that are left.
func (r *fileSpill) need(n int) error {
	if len(r.buf) >= n || r.off == r.end {
		return nil
	}
	if n > cap(r.all) {
		r.all = make([]byte, n+n/2)
	}
	have := copy(r.all[:cap(r.all)], r.buf)
	want := min(int64(cap(r.all)-have), r.end-r.off)
	got, err := r.f.ReadAt(r.all[have:have+int(want)], r.off)
	if err != nil && !(errors.Is(err, io.EOF) && int64(got) == want) {
		return err
	}
	r.off += int64(got)
	r.buf = r.all[:have+got]
	return nil
}

// sort brings the updates in the order of their keys, and updates of one key in the order in which
// they were made.
func (c *chunk) sort() {
	for i := range c.refs {
		r := &c.refs[i]
		r.prefix = prefixOf(c.key(*r)[min(c.skip, int(r.ksize)):])
	}
	slices.SortFunc(c.refs, func(a, b ref) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		if n := bytes.Compare(c.key(a), c.key(b)); n != 0 {
			return n
		}
		return cmp.Compare(a.off, b.off)
	})
}

// prefixOf returns a number that orders keys as their first bytes do.
func prefixOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

func (c *chunk) key(r ref) []byte { return c.data[r.off : r.off+r.ksize] }

func (c *chunk) value(r ref) []byte {
	if r.vsize == removed {
		return nil
	}
	at := r.off + r.ksize
	return c.data[at : at+r.vsize]
}

// superseded reports whether the update after i is one of the same key.
func (c *chunk) superseded(i int) bool {
	return i+1 < len(c.refs) && c.refs[i].prefix == c.refs[i+1].prefix && bytes.Equal(c.key(c.refs[i]), c.key(c.refs[i+1]))
}

// room makes place for n more bytes of data. It doubles the memory, but not beyond the limit.
func (c *chunk) room(n int, limit int64) {
	need := len(c.data) + n
	if need <= cap(c.data) {
		return
	}
	size := max(2*cap(c.data), 64<<10)
	size = max(min(size, int(limit)), need)
	c.data = append(make([]byte, 0, size), c.data...)
}
