package rebuild

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"gotycoon/db/filestore"
	"gotycoon/db/filestore/run"
)

// # Runs
//
// A file may have runs: sorted lists of updates that a checkpoint has written, and that have not
// been merged into the tree (package run). The newest update of a key counts, below all runs the
// record of the tree:
//
//	run 9    b: tombstone    c = 3                       the file has
//	run 8    a = 2           b = 2          d = 2        a = 2, c = 3, d = 2, e = 1
//	tree     a = 1           b = 1          e = 1
//
// Whoever reads a file in order (File) merges a cursor on each run with the walk through the tree.
// Whoever needs no order (Salvage) hands out the tree, and then one run after the other, the oldest
// first: the last update of a key counts. Whatever is written anew has no runs.
//
// A run without its info was not finished. Its updates are in the update log, and it is ignored.

// A runBucket says where a run is.
type runBucket struct {
	bucket
	number uint64
	info   run.Info // of a finished run
}

// Ranges of keys in the bucket of a run.
var (
	runHead   = span{[]byte{run.InfoKey}, []byte{run.FilterKey}}
	runBlocks = span{[]byte{run.BlockKey}, []byte{run.BlockKey + 1}}
	runLarge  = span{[]byte{run.LargeKey}, []byte{run.LargeKey + 1}}
)

// behind returns the key up to which the bottom of the file has what the run says; nil: nothing is
// merged. What the run still has up to the key may be old: a merge drops blocks as it passes them.
func (r *runBucket) behind(m *filestore.Meta) []byte {
	if r.number > m.MergeRun {
		return nil
	}
	return m.MergedTo
}

// asRun returns the run that an element of the bucket of runs names.
func (e element) asRun() (r runBucket, ok bool) {
	if e.flags != elementBucket || len(e.key) != 8 || len(e.value) < bucketSize {
		return r, false
	}
	return runBucket{bucket: e.asBucket(), number: binary.BigEndian.Uint64(e.key)}, true
}

// asBucket returns the bucket that an element holds.
func (e element) asBucket() bucket {
	b := bucket{page: e.page, root: binary.NativeEndian.Uint64(e.value)}
	if b.root == 0 {
		b.inline = bytes.Clone(e.value[bucketSize:])
	}
	return b
}

// listRuns returns the finished runs of a file, oldest first, and the number of unfinished ones.
func (p *pages) listRuns(all bucket) (runs []runBucket, unfinished int, err error) {
	if all.page == 0 {
		return nil, 0, nil
	}
	for e, err := range p.elements(all, span{}) {
		if err != nil {
			return nil, 0, err
		}
		r, ok := e.asRun()
		if !ok {
			return nil, 0, p.damage(e.page, "holds something that is no run")
		}
		finished := false
		if r.info, finished, err = p.runInfo(r); err != nil {
			return nil, 0, fmt.Errorf("run %d: %w", r.number, err)
		}
		if finished {
			runs = append(runs, r)
		} else {
			unfinished++
		}
	}
	return runs, unfinished, nil
}

// runInfo returns what a run says of itself; false: it was not finished.
func (p *pages) runInfo(r runBucket) (info run.Info, finished bool, err error) {
	for e, err := range p.elements(r.bucket, runHead) {
		if err != nil {
			return info, false, err
		}
		if info, finished = run.DecodeInfo(e.value); !finished {
			return info, false, p.damage(e.page, "what the run says of itself cannot be read")
		}
	}
	return info, finished, nil
}

var errStopped = errors.New("the loop has ended")

// elements returns the elements of a bucket, in order, that are within a range. The last pair has
// the error with which the walk ended early.
func (p *pages) elements(b bucket, only span) iter.Seq2[element, error] {
	return func(yield func(element, error) bool) {
		w := walker{pages: p, only: only, bad: func(d *Damage, _ span) error { return d }}
		w.leaf = func(pg page, in span) error {
			if pg.count == 0 && b.root != 0 {
				return p.damage(pg.id, "a page without entries")
			}
			return pg.records(in, func(e element) error {
				if only.holds(e.key) && !yield(e, nil) {
					return errStopped
				}
				return nil
			})
		}
		if err := w.bucket(b); err != nil && !errors.Is(err, errStopped) {
			yield(element{}, err)
		}
	}
}

// A puller takes elements one by one.
type puller struct {
	next func() (element, error, bool)
	stop func()
}

func (p *pages) pull(b bucket, only span) *puller {
	next, stop := iter.Pull2(p.elements(b, only))
	return &puller{next, stop}
}

// runUpdates gives the updates of a run, without the blocks' own memory: an update is valid until
// the next one.
type runUpdates struct {
	pages  *pages
	run    runBucket
	blocks *puller
	large  *puller // values that stand outside their blocks; nil: none was asked for

	behind []byte // see runBucket.behind
	block  run.Block
	at     int // the next entry in the block
	page   uint64
	now    update
	given  run.Info // figures of what was given
}

func (p *pages) runUpdates(r runBucket, m filestore.Meta) *runUpdates {
	return &runUpdates{pages: p, run: r, blocks: p.pull(r.bucket, runBlocks), behind: r.behind(&m)}
}

func (u *runUpdates) current() *update { return &u.now }

// close ends the walks.
func (u *runUpdates) close() {
	u.blocks.stop()
	if u.large != nil {
		u.large.stop()
	}
}

func (u *runUpdates) next() error {
	if err := u.step(); err != nil {
		return fmt.Errorf("run %d: %w", u.run.number, err)
	}
	return nil
}

func (u *runUpdates) step() error {
	for {
		key, flagged, err := u.entry()
		if err != nil {
			return err
		}
		if key == nil {
			u.now = update{end: true}
			return u.whole()
		}
		f, ok := filestore.DecodeFlagged(flagged)
		if !ok {
			return u.pages.damage(u.page, "the update of %q cannot be read", key)
		}
		count(&u.given, key, flagged, f)
		if u.behind == nil || bytes.Compare(key, u.behind) > 0 {
			u.now = update{key: key, value: f.Value, gone: !f.Live, last: f.Last, noted: f.Noted}
			return nil
		}
	}
}

// entry returns the next entry; key is nil at the end.
func (u *runUpdates) entry() (key, flagged []byte, err error) {
	if u.at == u.block.Len() {
		e, err, ok := u.blocks.next()
		if !ok || err != nil {
			return nil, nil, err
		}
		if u.block, err = u.pages.block(e); err != nil {
			return nil, nil, err
		}
		u.at, u.page = 0, e.page
	}
	key, flagged, err = u.block.Entry(u.at)
	if u.at++; err == nil && len(flagged) == 0 {
		flagged, err = u.outside(key)
	}
	return key, flagged, err
}

// count adds an entry to the figures of a run.
func count(i *run.Info, key, flagged []byte, f filestore.Flagged) {
	i.Entries++
	i.Bytes += int64(len(key) + len(flagged))
	if f.Live {
		i.Live++
		i.LiveBytes += int64(len(key) + len(f.Value))
	}
}

// whole returns an error unless the run has given what it says of itself.
func (u *runUpdates) whole() error {
	want := u.run.info
	want.About, want.AboutBytes = 0, 0
	if u.given != want {
		return &Damage{Whole: true, What: fmt.Sprintf("it has %d entries with %d bytes, and says that it has %d with %d",
			u.given.Entries, u.given.Bytes, want.Entries, want.Bytes)}
	}
	return nil
}

// outside returns the value of a key that is too large for a block. Such values are in the order of
// their keys as well, so one walk meets them all.
func (u *runUpdates) outside(key []byte) ([]byte, error) {
	if u.large == nil {
		u.large = u.pages.pull(u.run.bucket, runLarge)
	}
	for {
		e, err, ok := u.large.next()
		if err != nil {
			return nil, err
		}
		if !ok || bytes.Compare(e.key[1:], key) > 0 {
			return nil, u.pages.damage(u.page, "the large value of %q is missing", key)
		}
		if bytes.Equal(e.key[1:], key) && e.flags == 0 {
			flagged, err := run.OpenLarge(e.value)
			if err != nil {
				return nil, u.pages.damage(e.page, "the large value of %q does not match its checksum", key)
			}
			return flagged, nil
		}
	}
}

// block returns the block that an element of a run holds, whose checksum is right and whose entries
// are in order and end with the element's key.
func (p *pages) block(e element) (run.Block, error) {
	b, err := run.OpenBlock(e.value)
	if err != nil || e.flags != 0 {
		return b, p.damage(e.page, "a block does not match its checksum")
	}
	var last []byte
	for i := range b.Len() {
		key, _, err := b.Entry(i)
		if err != nil || i > 0 && bytes.Compare(key, last) <= 0 {
			return b, p.damage(e.page, "entry %d of a block is not where it should be", i)
		}
		last = key
	}
	if !bytes.Equal(last, e.key[1:]) {
		return b, p.damage(e.page, "a block ends with the key %q, and should end with %q", last, e.key[1:])
	}
	return b, nil
}

// addRuns adds the updates of runs to a list that is to be merged. stop ends the walks.
func (p *pages) addRuns(m *merged, runs []runBucket, desc filestore.Meta) (stop func()) {
	all := make([]*runUpdates, len(runs))
	for i, r := range runs {
		all[i] = p.runUpdates(r, desc)
		m.heap = append(m.heap, aged{all[i], i})
	}
	return func() {
		for _, u := range all {
			u.close()
		}
	}
}
