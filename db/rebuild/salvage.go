package rebuild

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"os"

	"gotycoon/db/filestore"
)

// Salvaged is what Salvage has done and what it could not do.
type Salvaged struct {
	Meta     filestore.Meta // of the file; its Format is 0 when no description could be read
	Records  int64          // handed out; a key may come more than once
	Orphans  int64          // records from pages that nothing leads to any more
	Doubtful int64          // records from pages that may be out of date
	Stale    bool           // the newest state could not be read: the records are of an older one
	Lost     []Loss         // the first thousand findings
	Found    int            // all
}

// A Loss is something in a damaged file that could not be read.
type Loss struct {
	Damage
	Keys string // which keys may be missing because of it; empty: none
}

// A salvager reads what it can of a file.
type salvager struct {
	*Salvaged
	pages
	take     func(key, value []byte) error
	remember func(key []byte, e filestore.LastUpdate) error // nil: nobody asks
	progress func(pages int)

	data     bucket
	versions bucket
	noTree   bool   // nothing leads to the records
	free     bitmap // pages in the list of free pages
	freeOK   bool
	reached  bitmap
	lost     []span // keys that may be missing
}

// Salvage hands out every record of a database file that can be read, however damaged the file is.
// Records of pages that the file leads to come last, so that of several records with one key the
// last one is right. Salvage only reads the file, and holds its lock meanwhile.
//
// The records of a page that cannot be read are lost. If a branch cannot be read, Salvage finds the
// pages below it by looking at all pages that are neither in use nor free. If the list of free
// pages is lost, too, old pages cannot be told from current ones: their records are Doubtful. If a
// meta page is damaged, or the page that names the buckets, Salvage compares the descriptions in
// all pages that look like the latter, and takes the newest.
//
// remember is given what a file with Meta.LWW remembers of keys, and may be nil. Pages of versions
// that nothing leads to are not looked for.
//
// progress is told of pages as they are read and may be nil. The error is that of take or remember,
// or says that the file cannot be opened.
func Salvage(path string, tryLock bool, take func(key, value []byte) error, remember func(key []byte, e filestore.LastUpdate) error,
	progress func(pages int)) (*Salvaged, error) {
	f, size, err := openSized(path, tryLock)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := newSalvager(f, size, take, progress)
	s.remember = remember
	return s.Salvaged, s.run()
}

func newSalvager(r io.ReaderAt, size int64, take func(key, value []byte) error, progress func(int)) *salvager {
	if progress == nil {
		progress = func(int) {}
	}
	return &salvager{Salvaged: &Salvaged{}, take: take, progress: progress, pages: pages{r: r, size: size}}
}

func (s *salvager) run() error {
	s.begin()
	if !s.noTree {
		if err := s.tree(nil); err != nil { // what is missing?
			return err
		}
	}
	if len(s.lost) > 0 || s.noTree {
		if err := s.orphans(); err != nil {
			return err
		}
	}
	if s.noTree {
		return nil
	}
	s.reached = newBitmap(s.end)
	if err := s.tree(s.take); err != nil {
		return err
	}
	return s.memory()
}

// lose notes a finding and the keys that may be missing because of it.
func (s *salvager) lose(d *Damage, in *span) {
	l := Loss{Damage: *d}
	if in != nil {
		l.Keys = in.String()
		s.lost = append(s.lost, span{bytes.Clone(in.low), bytes.Clone(in.high)})
	}
	if s.Found++; len(s.Lost) < maxFindings {
		s.Lost = append(s.Lost, l)
	}
}

// begin finds the newest state of the file.
func (s *salvager) begin() {
	found, errs := metas(s.r)
	s.pageSize = int64(os.Getpagesize())
	if len(found) > 0 {
		s.pageSize = int64(found[0].pageSize)
	}
	s.end = uint64(s.size / s.pageSize)
	for i, err := range errs {
		if err != nil {
			s.lose(s.damage(uint64(i), "%v", err), nil)
		}
	}
	var best meta
	for _, m := range found {
		best = max2(best, m)
		if int64(m.end) > int64(s.end) && m.tx >= best.tx {
			s.lose(s.damage(s.end, "the file ends here, and had %d pages", m.end), nil)
		}
	}
	s.reached, s.free = newBitmap(s.end), newBitmap(s.end)
	top, err := s.top(best.root)
	if err == nil && errs[0] == nil && errs[1] == nil {
		s.begun(top)
		s.readFreelist(best.freelist)
		return
	}
	s.beginAnew(best, top, err)
}

func max2(a, b meta) meta {
	if b.tx >= a.tx {
		return b
	}
	return a
}

func (s *salvager) begun(t top) {
	s.Meta, s.data, s.versions = t.desc, t.data, t.versions
	s.noTree = t.data.page == 0
}

// beginAnew looks through all pages for the newest one that names the buckets, because a meta page,
// or the page it leads to, is damaged.
func (s *salvager) beginAnew(m meta, best top, err error) {
	if damage, ok := errors.AsType[*Damage](err); ok && m.tx > 0 {
		s.lose(damage, nil)
	}
	current, stale := err == nil, err != nil && m.tx > 0
	for id := uint64(2); id < s.end; id++ {
		if !s.looksLikeTop(id) {
			continue
		}
		t, terr := s.top(id)
		if terr == nil && (err != nil || newer(t.desc, best.desc)) {
			best, err, current = t, nil, current && id == m.root
		}
	}
	s.Stale = stale && err == nil
	if err != nil {
		s.lose(&Damage{Whole: true, What: "nothing leads to the records: all pages are looked at"}, &span{})
		s.begun(best) // as far as it could be read
		return
	}
	s.begun(best)
	if current {
		s.readFreelist(m.freelist)
	}
}

// looksLikeTop reports whether a page begins as a page does that names buckets.
func (s *salvager) looksLikeTop(id uint64) bool {
	var b [headSize + elementSize]byte
	if _, err := s.r.ReadAt(b[:], int64(id)*s.pageSize); err != nil {
		return false
	}
	h := readHead(b[:])
	return h.id == id && h.flags == flagLeaf && (h.count == 2 || h.count == 3) && binary.NativeEndian.Uint32(b[headSize:]) == elementBucket
}

// newer reports whether description a of a file is later than description b.
func newer(a, b filestore.Meta) bool {
	n := cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Checkpoints, b.Checkpoints), cmp.Compare(a.Stamp, b.Stamp))
	if n != 0 {
		return n > 0
	}
	return bytes.Compare(a.Merging, b.Merging) > 0
}

func (s *salvager) readFreelist(id uint64) {
	ids, _, err := s.freePages(id)
	if damage, ok := errors.AsType[*Damage](err); ok {
		s.lose(damage, nil)
		return
	}
	s.freeOK = true
	for _, id := range ids {
		if id < s.end {
			s.free.set(id)
		}
	}
}

// tree visits everything that the top leads to. Without take it notes what is missing.
func (s *salvager) tree(take func(key, value []byte) error) error {
	note := take == nil
	w := walker{pages: &s.pages}
	w.bad = func(d *Damage, in span) error {
		switch {
		case !note:
		case in.high != nil && bytes.Equal(in.low, in.high): // no keys
			s.lose(d, nil)
		default:
			s.lose(d, &in)
		}
		return nil
	}
	w.seen = func(p page) error {
		for i := uint64(0); i <= uint64(p.overflow); i++ {
			if !s.reached.set(p.id+i) && i == 0 {
				return s.damage(p.id, "is reached twice")
			}
		}
		s.progress(int(p.overflow) + 1)
		return nil
	}
	w.leaf = func(p page, in span) error {
		return s.leaf(p, in, func(key, value []byte) error {
			if note {
				return nil
			}
			s.Records++
			return take(key, value)
		}, note)
	}
	return w.bucket(s.data)
}
