package rebuild

import (
	"encoding/binary"
	"errors"
	"io"

	"gotycoon/internal/vfs"
)

// write writes a sorted chunk to a file as
//
//	varint key size, varint 0: removed, or value size + 1; key, value
//
// for the last update of every key, and returns where it stands.
func (c *chunk) write(f vfs.File, off int64, buf []byte) (run, error) {
	r := run{off, off, c.number}
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
		if len(buf) >= runBuffer-binary.MaxVarintLen64 {
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

// updates are the last updates of keys, in order. At the end key is nil.
type updates interface {
	// next moves on to the next update.
	next() error
	current() *update
}

type update struct {
	key, value []byte // valid until next
	gone       bool   // the key is removed
	end        bool   // there is no update any more
}

// memoryRun is a sorted chunk as updates.
type memoryRun struct {
	*chunk
	at  int // of the next one
	now update
}

func (m *memoryRun) current() *update { return &m.now }

func (m *memoryRun) next() error {
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

// fileRun is a run as updates.
type fileRun struct {
	f   vfs.File
	run        // what has not been read
	buf []byte // read and not consumed
	all []byte // the room that buf is in
	now update
}

func (r *fileRun) current() *update { return &r.now }

func (r *fileRun) next() error {
	if len(r.buf) == 0 && r.off == r.end {
		r.now = update{end: true}
		return nil
	}
	if err := r.need(2 * binary.MaxVarintLen64); err != nil {
		return err
	}
	ksize, n := binary.Uvarint(r.buf)
	vsize, m := binary.Uvarint(r.buf[max(n, 0):])
	if n <= 0 || m <= 0 {
		return io.ErrUnexpectedEOF
	}
	r.now = update{gone: vsize == 0}
	if vsize > 0 {
		vsize--
	}
	size := n + m + int(ksize+vsize)
	if err := r.need(size); err != nil {
		return err
	}
	if len(r.buf) < size {
		return io.ErrUnexpectedEOF
	}
	body := r.buf[n+m : size]
	r.now.key, r.now.value = body[:ksize], body[ksize:]
	r.buf = r.buf[size:]
	return nil
}

// need reads until n bytes are there, or all that there are.
func (r *fileRun) need(n int) error {
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
