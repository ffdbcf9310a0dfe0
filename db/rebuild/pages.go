package rebuild

import (
	"bytes"
	"fmt"
	"io"

	"gotycoon/db/filestore"
	"gotycoon/db/filestore/run"
)

// metaAt returns one of the two meta pages of a file.
func metaAt(r io.ReaderAt, off int64) (meta, error) {
	var b [headSize + metaSize]byte
	if _, err := r.ReadAt(b[:], off); err != nil {
		return meta{}, err
	}
	return readMeta(b[headSize:])
}

// metas returns the valid meta pages. The first one says where the second one is; if the first is
// damaged, all possible places are looked at.
func metas(r io.ReaderAt) (found []meta, errs [2]error) {
	first, err := metaAt(r, 0)
	errs[0] = err
	size := int64(first.pageSize)
	if err == nil {
		found = append(found, first)
	} else {
		size = minPageSize
	}
	for ; size <= maxPageSize; size *= 2 {
		var second meta
		second, errs[1] = metaAt(r, size)
		if errs[1] == nil && int64(second.pageSize) == size {
			return append(found, second), errs
		}
		if err == nil {
			break
		}
	}
	return found, errs
}

// newestMeta returns the meta page that counts.
func newestMeta(r io.ReaderAt, size int64) (meta, error) {
	found, errs := metas(r)
	var best meta
	for _, m := range found {
		if m.tx >= best.tx {
			best = m
		}
	}
	if len(found) == 0 {
		return best, &Damage{Whole: true, What: "no meta page is good: " + errs[0].Error()}
	}
	if int64(best.end)*int64(best.pageSize) > size {
		return best, &Damage{Whole: true, What: fmt.Sprintf("the file has %d bytes and should have at least %d", size, int64(best.end)*int64(best.pageSize))}
	}
	return best, nil
}

// damage returns a finding about a page.
func (p *pages) damage(id uint64, format string, args ...any) *Damage {
	return &Damage{Page: id, Offset: int64(id) * p.pageSize, What: fmt.Sprintf(format, args...)}
}

// read returns a page of one of the kinds in flags. The buffer is used if it is large enough.
func (p *pages) read(id uint64, flags uint16, buf []byte) (page, []byte, error) {
	if id < 2 || id >= p.end {
		return page{}, buf, p.damage(id, "is outside of the file's %d pages", p.end)
	}
	if int64(len(buf)) < p.pageSize {
		buf = make([]byte, p.pageSize)
	}
	if _, err := p.r.ReadAt(buf[:p.pageSize], int64(id)*p.pageSize); err != nil {
		return page{}, buf, p.damage(id, "cannot be read: %v", err)
	}
	h := readHead(buf)
	switch {
	case h.id != id:
		return page{}, buf, p.damage(id, "says that it is page %d", h.id)
	case h.flags&^flags != 0 || h.flags == 0 || h.flags&(h.flags-1) != 0:
		return page{}, buf, p.damage(id, "is of kind %#x", h.flags)
	case uint64(h.overflow) >= p.end-id:
		return page{}, buf, p.damage(id, "goes on for %d pages, behind the end of the file", h.overflow)
	}
	size := p.pageSize * (int64(h.overflow) + 1)
	if size > p.pageSize {
		if int64(len(buf)) < size {
			buf = append(make([]byte, 0, size), buf[:p.pageSize]...)[:size]
		}
		if _, err := p.r.ReadAt(buf[p.pageSize:size], (int64(id)+1)*p.pageSize); err != nil {
			return page{}, buf, p.damage(id, "cannot be read: %v", err)
		}
	}
	return page{h, buf[:size]}, buf, nil
}

// A top is what stands at the top of a database.
type top struct {
	desc filestore.Meta
	data bucket
	list []bucket // all

	versions bucket // with Meta.LWW
	packed   bucket // page 0: the file has none
	runs     bucket // page 0: the file has none
}

// top reads the page that names the buckets.
func (p *pages) top(id uint64) (top, error) {
	var t top
	pg, _, err := p.read(id, flagLeaf, nil)
	if err != nil {
		return t, err
	}
	err = pg.records(span{}, func(e element) error {
		if e.flags != elementBucket || len(e.value) < bucketSize {
			return p.damage(id, "holds something that is no bucket")
		}
		b := e.asBucket()
		t.list = append(t.list, b)
		switch string(e.key) {
		case filestore.DataBucket:
			t.data = b
		case filestore.VersionBucket:
			t.versions = b
		case run.PackedBucket:
			t.packed = b
		case run.Bucket:
			t.runs = b
		case filestore.MetaBucket:
			return p.description(b, &t.desc)
		default:
			return p.damage(id, "names the bucket %q, which no database has", e.key)
		}
		return nil
	})
	switch {
	case err != nil:
	case t.data.page == 0 || t.desc.Format == 0:
		err = p.damage(id, "does not name the two parts of a database")
	case t.desc.LWW && t.versions.page == 0:
		err = p.damage(id, "does not name the versions of the records")
	}
	return t, p.placed(err, id)
}

// placed adds the page to a finding in it.
func (p *pages) placed(err error, id uint64) error {
	if d, ok := err.(*Damage); ok && d.Page == 0 { // as it was made
		d.Page, d.Offset = id, int64(id)*p.pageSize
	}
	return err
}

// description reads the description from its bucket.
func (p *pages) description(b bucket, m *filestore.Meta) error {
	var found bool
	w := walker{pages: p, bad: func(d *Damage, _ span) error { return d }}
	w.leaf = func(pg page, in span) error {
		return pg.records(in, func(e element) (err error) {
			if bytes.Equal(e.key, []byte(filestore.MetaKey)) {
				found = true
				if *m, err = filestore.DecodeMeta(e.value); err != nil {
					return p.damage(b.page, "%v", err)
				}
			}
			return nil
		})
	}
	err := w.bucket(b)
	if err == nil && !found {
		err = p.damage(b.page, "has no description of the database")
	}
	return err
}

// A bitmap is a set of pages.
type bitmap []uint64

func newBitmap(n uint64) bitmap {
	b := make(bitmap, n/64+1)
	for i := n; i < 64*uint64(len(b)); i++ {
		b[i/64] |= 1 << (i % 64) // behind the end
	}
	return b
}

// set adds a page and reports whether it is new.
func (b bitmap) set(i uint64) bool {
	was := b.has(i)
	b[i/64] |= 1 << (i % 64)
	return !was
}

func (b bitmap) has(i uint64) bool { return b[i/64]>>(i%64)&1 != 0 }

// missing returns how many pages from one on are not in the set, and the first of them.
func (b bitmap) missing(from uint64) (count, first uint64) {
	for i := from; i < 64*uint64(len(b)); i++ {
		if !b.has(i) {
			if count == 0 {
				first = i
			}
			count++
		}
	}
	return count, first
}
