package rebuild

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"gotycoon/db/filestore"
	"gotycoon/db/record"
)

// formatRuns is Meta.Format of a file with runs; a file without runs has a smaller one.
const formatRuns = 2

// maxFindings is how many findings a Report keeps; it counts them all.
const maxFindings = 1000

// A Report is what Check has found.
type Report struct {
	Meta     filestore.Meta
	Pages    uint64 // of the file
	Leaves   uint64 // pages with records
	Branches uint64
	Free     uint64   // pages that hold nothing
	Records  int64    // of all layers together; when something is damaged, of the tree alone
	Bytes    int64    // their keys and values
	Tree     Sums     // of what is below the runs; when something is damaged, of the tree alone
	Runs     int      // finished ones
	Entries  int64    // of the runs
	Damage   []Damage // the first thousand findings
	Found    int      // all

	Unfinished int // runs that were not finished, and are ignored
}

// add adds a finding.
func (r *Report) add(d *Damage) {
	if r.Found++; len(r.Damage) < maxFindings {
		r.Damage = append(r.Damage, *d)
	}
}

// A checker looks at a whole file.
type checker struct {
	*Report
	pages
	meta     meta
	used     bitmap // pages that are reached, or free
	removals int64  // that the file remembers
	joiner   *joiner
	small    *packedWalk
	progress func(pages int)
}

// Check looks at every page of a database file: that each is either reached once or free, its form,
// the order of all keys, the form of all records, and the sums that the description claims, the
// records' checksum included where Meta has one. progress is told of pages as they are done, and
// may be nil. An error means that the file could not be examined, not that it is damaged.
func Check(path string, tryLock bool, progress func(pages int)) (*Report, error) {
	f, size, err := openSized(path, tryLock)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return check(f, size, progress)
}

func check(r io.ReaderAt, size int64, progress func(int)) (*Report, error) {
	c := &checker{Report: &Report{}, progress: progress}
	if c.progress == nil {
		c.progress = func(int) {}
	}
	c.pages = pages{r: r, size: size, pageSize: int64(os.Getpagesize())}
	return c.Report, c.check()
}

func (c *checker) check() (err error) {
	_, errs := metas(c.r)
	for i, err := range errs {
		if err != nil {
			c.add(c.damage(uint64(i), "%v", err))
		}
	}
	c.meta, err = newestMeta(c.r, c.size)
	if damage, ok := errors.AsType[*Damage](err); ok {
		c.add(damage)
		return nil
	}
	c.pageSize, c.end = int64(c.meta.pageSize), c.meta.end
	c.Pages, c.used = c.end, newBitmap(c.end)
	if err := c.tree(); err != nil {
		return err
	}
	c.freelist()
	c.account()
	return nil
}

// tree checks all that is reached from the top.
func (c *checker) tree() error {
	top, err := c.top(c.meta.root)
	if damage, ok := errors.AsType[*Damage](err); ok {
		c.add(damage)
		return nil
	}
	c.Meta = top.desc
	pg, _, err := c.read(c.meta.root, flagLeaf, nil)
	if err != nil {
		return err
	}
	c.reach(pg)
	var runs []runBucket
	if top.runs.page != 0 {
		if runs, err = c.runs(top.runs); err != nil {
			return err
		}
	}
	if err := c.packedPages(top.packed); err != nil {
		return err
	}
	small := top.packed
	if c.Found > 0 {
		runs, small = nil, bucket{} // their cursors would end at the damage
	}
	if c.Runs > 0 && c.Meta.Format < formatRuns {
		c.add(&Damage{Whole: true, What: "the file has runs, and says that it has none"})
	}
	c.joiner, err = c.join(runs)
	defer c.joiner.stop()
	if err != nil {
		return err
	}
	c.small, err = c.packedWalk(small)
	defer c.small.close()
	if err != nil {
		return err
	}
	for _, b := range top.list {
		if sameBucket(b, top.runs) || sameBucket(b, top.packed) {
			continue
		}
		w := walker{pages: &c.pages, seen: c.seen, bad: func(d *Damage, _ span) error { c.add(d); return nil }}
		w.leaf = func(page, span) error { return nil }
		switch {
		case sameBucket(b, top.data):
			w.leaf = c.records
		case sameBucket(b, top.versions):
			w.leaf = c.versions
		}
		if err := w.bucket(b); err != nil {
			return err
		}
	}
	if err := c.small.upTo(nil, c.record); err != nil {
		return err
	}
	return c.joiner.rest()
}

// record takes a record below the runs; records come in the order of keys.
func (c *checker) record(key, value []byte) error {
	c.Tree.add(key, value)
	return c.joiner.record(key, value)
}

func sameBucket(a, b bucket) bool {
	return a.root == b.root && (a.root != 0 || len(a.inline) > 0 && len(b.inline) > 0 && &a.inline[0] == &b.inline[0])
}

// seen takes note of a page of a tree.
func (c *checker) seen(p page) error {
	if !c.reach(p) {
		return c.damage(p.id, "is reached twice")
	}
	if p.flags == flagBranch {
		c.Branches++
	} else {
		c.Leaves++
	}
	return nil
}

// reach marks a page and its overflow pages; false means that one of them was marked before.
func (c *checker) reach(p page) bool {
	fresh := true
	for i := uint64(0); i <= uint64(p.overflow); i++ {
		fresh = c.used.set(p.id+i) && fresh
	}
	c.progress(int(p.overflow) + 1)
	return fresh
}

func (c *checker) records(p page, in span) error {
	return p.records(in, func(e element) error {
		if e.flags != 0 || len(e.key) == 0 || e.key[0] != filestore.KeyPrefix {
			return c.damage(p.id, "holds something that is no record")
		}
		if !c.Meta.Persistent && len(e.value) < record.XTSize {
			c.add(c.damage(p.id, "the value of key %q has no expiration time", e.key[1:]))
		}
		if err := c.small.upTo(e.key[1:], c.record); err != nil {
			return err
		}
		return c.record(e.key[1:], e.value)
	})
}

// versions checks what is remembered of keys.
func (c *checker) versions(p page, in span) error {
	return p.records(in, func(el element) error {
		e, ok := filestore.DecodeEntry(el.value)
		if !ok || el.flags != 0 || len(el.key) == 0 || el.key[0] != filestore.VersionPrefix {
			return c.damage(p.id, "holds something that is "+noVersion)
		}
		if e.Removed {
			c.removals++
		}
		return nil
	})
}

// freelist checks the list of the pages that hold nothing.
func (c *checker) freelist() {
	ids, p, err := c.freePages(c.meta.freelist)
	if damage, ok := errors.AsType[*Damage](err); ok {
		c.add(damage)
		return
	}
	if !c.reach(p) {
		c.add(c.damage(p.id, "is both the list of free pages and something else"))
	}
	for _, id := range ids {
		if id < 2 || id >= c.end {
			c.add(c.damage(p.id, "lists page %d, of %d pages, as free", id, c.end))
		} else if !c.used.set(id) {
			c.add(c.damage(id, "is listed as free, and is used"))
		}
	}
	c.Free = uint64(len(ids))
	c.progress(len(ids))
}

// freePages reads the list of free pages.
func (p *pages) freePages(id uint64) ([]uint64, page, error) {
	if id == noFreelist {
		return nil, page{}, p.damage(0, "has no list of free pages")
	}
	pg, _, err := p.read(id, flagFreelist, nil)
	if err != nil {
		return nil, pg, err
	}
	count, body := uint64(pg.count), pg.raw[headSize:]
	if count == 0xFFFF {
		count, body = binary.NativeEndian.Uint64(body), body[8:]
	}
	if count > uint64(len(body))/8 {
		return nil, pg, p.damage(id, "lists %d free pages and is too short", count)
	}
	ids := make([]uint64, count)
	for i := range ids {
		ids[i] = binary.NativeEndian.Uint64(body[8*i:])
	}
	return ids, pg, nil
}

// account checks the sums, and that no page is left over.
func (c *checker) account() {
	if c.Found > 0 {
		return // pages behind the damage are missing anyhow
	}
	if left, first := c.used.missing(2); left > 0 {
		c.add(c.damage(first, "and %d other pages are neither used nor free", left-1))
	}
	if c.Tree.Count != c.Meta.Count || c.Tree.Bytes != c.Meta.Bytes {
		where := ""
		if c.Runs > 0 {
			where = " below its runs"
		}
		c.add(&Damage{Whole: true, What: fmt.Sprintf("the file has %d records with %d bytes%s, and says that it has %d with %d",
			c.Tree.Count, c.Tree.Bytes, where, c.Meta.Count, c.Meta.Bytes)})
	}
	if c.Meta.Summed && c.Tree.Sum != c.Meta.Sum {
		c.add(&Damage{Whole: true, What: fmt.Sprintf("a record is, or was, not what had been written: the checksum of the records is %016x, and should be %016x",
			c.Tree.Sum, c.Meta.Sum)})
	}
	if c.removals != c.Meta.Removals {
		c.add(&Damage{Whole: true, What: fmt.Sprintf("the file remembers %d removals, and says that it remembers %d", c.removals, c.Meta.Removals)})
	}
}
