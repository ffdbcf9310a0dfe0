package rebuild

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"math"
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
	Tree     Sums           // of the records handed out from the tree
	Lost     []Loss         // the first thousand findings
	Found    int            // all

	Runs       int   // finished runs
	Entries    int64 // handed out from runs
	PassedOver int   // pages with entries of runs of which nobody knows to which run they belong
	RunsHurt   bool  // entries of runs may be missing: older values have come through
}

// Certain reports whether all records of the file were handed out, each as it had been written, as
// far as the checksums in the file can tell. A value that is too large for a block of its run has
// none.
func (s *Salvaged) Certain() bool {
	m := &s.Meta
	return m.Format != 0 && m.Summed && s.Tree == Sums{m.Count, m.Bytes, m.Sum} && !s.RunsHurt && !s.Stale && s.Doubtful == 0
}

// A Sink takes what Salvage reads; a *Builder is one. Of several calls for a key the last one
// counts.
type Sink interface {
	Set(key, value []byte) error
	Remove(key []byte) error
	Remember(key []byte, e filestore.LastUpdate) error
	Fade(key []byte) error
}

// A Loss is something in a damaged file that could not be read.
type Loss struct {
	Damage
	Keys string // which keys may be missing because of it; empty: none

	// Newer says of which keys a newer update may be missing because of it, so that an older record
	// has come through or a removed one is back; empty: of none.
	Newer string
}

// A salvager reads what it can of a file.
type salvager struct {
	*Salvaged
	pages
	to       Sink
	progress func(pages int)

	data       bucket
	packed     bucket // page 0: there is none
	versions   bucket
	all        bucket // of all runs; page 0: none
	runs       []*savedRun
	unfinished int    // runs that seem not to have been finished
	noTree     bool   // nothing leads to the records
	free       bitmap // pages in the list of free pages
	freeOK     bool
	reached    bitmap
	lost       []span // keys that may be missing
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
// What the file's runs have comes after the records, see salvage_runs.go. With Meta.LWW, what the
// file remembers of keys is handed out, too. Pages of versions that nothing leads to are not looked
// for.
//
// progress is told of pages as they are read and may be nil. The error is that of the sink, or says
// that the file cannot be opened.
func Salvage(path string, tryLock bool, to Sink, progress func(pages int)) (*Salvaged, error) {
	f, size, err := openSized(path, tryLock)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := newSalvager(f, size, to, progress)
	return s.Salvaged, s.run()
}

func newSalvager(r io.ReaderAt, size int64, to Sink, progress func(int)) *salvager {
	if progress == nil {
		progress = func(int) {}
	}
	return &salvager{Salvaged: &Salvaged{}, to: to, progress: progress, pages: pages{r: r, size: size}}
}

func (s *salvager) run() error {
	s.begin()
	if !s.noTree {
		if err := s.tree(true); err != nil { // what is missing?
			return err
		}
		if err := s.findRuns(); err != nil {
			return err
		}
	}
	s.lost = joined(s.lost)
	if s.incomplete() {
		if err := s.orphans(); err != nil {
			return err
		}
	}
	if s.PassedOver > 0 && (s.noTree || s.unfinished > 0) || s.unfinished > 0 && !s.freeOK {
		s.RunsHurt = true
	}
	if s.noTree {
		return nil
	}
	s.reached = newBitmap(s.end)
	for _, part := range []func() error{func() error { return s.tree(false) }, s.memory, s.giveRuns} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// incomplete reports whether pages are missing that may be among those to which nothing leads.
func (s *salvager) incomplete() bool {
	for _, r := range s.runs {
		if len(r.lost) > 0 {
			return true
		}
	}
	return len(s.lost) > 0 || s.noTree || s.RunsHurt || s.unfinished > 0
}

// record hands out a record of the tree.
func (s *salvager) record(key, value []byte) error {
	s.Records++
	s.Tree.add(key, value)
	return s.to.Set(key, value)
}

// lose notes a finding and the keys that may be missing because of it.
func (s *salvager) lose(d *Damage, in *span) {
	l := Loss{Damage: *d}
	if in != nil {
		l.Keys = in.String()
		s.lost = append(s.lost, span{bytes.Clone(in.low), bytes.Clone(in.high)})
	}
	s.noteLoss(l)
}

// loseNewer notes a finding in a run, and the keys whose entries may be missing.
func (s *salvager) loseNewer(d *Damage, in span) {
	l := Loss{Damage: *d}
	if in.high == nil || less(in.low, in.high) {
		l.Newer = in.String()
	}
	s.noteLoss(l)
}

func (s *salvager) noteLoss(l Loss) {
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
	s.Meta, s.data, s.packed, s.versions, s.all = t.desc, t.data, t.packed, t.versions, t.runs
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
		if terr == nil && (err != nil || s.newer(t, best)) {
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
	return h.id == id && h.flags == flagLeaf && h.count >= 2 && h.count <= 5 && binary.NativeEndian.Uint32(b[headSize:]) == elementBucket
}

// newer reports whether state a of a file is later than state b. While runs are merged into the
// tree nothing else changes: the merge begins, goes on from key to key, and its runs disappear, the
// oldest first.
func (s *salvager) newer(a, b top) bool {
	x, y := a.desc, b.desc
	n := cmp.Or(cmp.Compare(x.Epoch, y.Epoch), cmp.Compare(x.Checkpoints, y.Checkpoints), cmp.Compare(x.Stamp, y.Stamp),
		bytes.Compare(x.Merging, y.Merging))
	if n == 0 && max(x.Format, y.Format) >= formatRuns {
		n = cmp.Or(cmp.Compare(s.oldestRun(a), s.oldestRun(b)), cmp.Compare(x.MergeRun, y.MergeRun), bytes.Compare(x.MergedTo, y.MergedTo))
	}
	return n > 0
}

// oldestRun returns the number of the oldest finished run of a state. The runs of an old state may
// not be there any more.
func (s *salvager) oldestRun(t top) uint64 {
	runs, _, err := s.listRuns(t.runs)
	switch {
	case err != nil:
		return 0
	case len(runs) == 0:
		return math.MaxUint64
	}
	return runs[0].number
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

// tree visits all records below the runs that the top leads to. With note it notes what is missing;
// otherwise it hands out the records.
func (s *salvager) tree(note bool) error {
	w := walker{pages: &s.pages, seen: s.mark}
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
	w.leaf = func(p page, in span) error {
		return s.leaf(p, in, func(key, value []byte) error {
			if note {
				return nil
			}
			return s.record(key, value)
		}, note)
	}
	if err := w.bucket(s.data); err != nil {
		return err
	}
	return s.savePacked(note)
}

// mark marks a page as reached; the error says that it was reached before.
func (s *salvager) mark(p page) error {
	twice := false
	for i := uint64(0); i <= uint64(p.overflow); i++ {
		if !s.reached.set(p.id+i) && i == 0 {
			twice = true
		}
	}
	s.progress(int(p.overflow) + 1)
	if twice {
		return s.damage(p.id, "is reached twice")
	}
	return nil
}
