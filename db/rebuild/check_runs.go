package rebuild

import (
	"bytes"
	"fmt"
)

// runs checks the runs of a file, each by itself, and returns the finished ones, oldest first.
func (c *checker) runs(all bucket) (finished []runBucket, err error) {
	w := walker{pages: &c.pages, seen: c.seen, bad: func(d *Damage, _ span) error { c.add(d); return nil }}
	w.leaf = func(p page, in span) error {
		return p.records(in, func(e element) error {
			r, ok := e.asRun()
			if !ok {
				return c.damage(p.id, "holds something that is no run")
			}
			whole, err := c.run(&r)
			if whole {
				finished = append(finished, r)
			}
			return err
		})
	}
	return finished, w.bucket(all)
}

// run checks a run, and reports whether it was finished. Of an unfinished run no figures are known.
func (c *checker) run(r *runBucket) (finished bool, err error) {
	before := c.Found
	t := tally{pages: &c.pages, number: r.number, persistent: c.Meta.Persistent}
	w := walker{pages: &c.pages, seen: c.seen, bad: func(d *Damage, _ span) error { c.add(d); return nil }}
	w.leaf = func(p page, in span) error {
		return p.records(in, func(e element) error {
			if d := t.element(e); d != nil {
				c.add(d)
			}
			return nil
		})
	}
	if err := w.bucket(r.bucket); err != nil {
		return false, err
	}
	if !t.finished {
		c.Unfinished++
		return false, nil
	}
	r.info = t.info
	c.Runs++
	c.Entries += t.seen.Entries
	if c.Found == before {
		for _, wrong := range t.verdict() {
			c.add(&Damage{Whole: true, What: wrong})
		}
	}
	return true, nil
}

// A joiner adds up the records that a file has when its runs are laid over its tree. It also checks
// what a merge has promised: up to the key Meta.MergedTo the tree has what the runs up to
// Meta.MergeRun say.
type joiner struct {
	*checker
	merged *merged
	stop   func()
	key    []byte // scratch
	merge  int    // the runs up to this index are being merged; -1: none

	tree   []byte // value of the present key in the tree
	inTree bool
	looked bool  // a run that is being merged has the present key
	behind int64 // keys for which the merge has not kept its promise
}

// join begins with the runs of a file; without runs the tree counts alone.
func (c *checker) join(runs []runBucket) (*joiner, error) {
	j := &joiner{checker: c, merged: &merged{}, merge: -1}
	for i, r := range runs {
		if r.number <= c.Meta.MergeRun && c.Meta.MergedTo != nil {
			j.merge = i
		}
	}
	j.stop = c.addRuns(j.merged, runs)
	j.merged.each = j.look
	return j, j.merged.begin()
}

// record takes the next record of the tree.
func (j *joiner) record(key, value []byte) error {
	for {
		u := j.merged.current()
		if u == nil || bytes.Compare(key, u.key) < 0 {
			j.count(key, value)
			return nil
		}
		exact := bytes.Equal(key, u.key)
		j.tree, j.inTree = nil, exact
		if exact {
			j.tree = value
		}
		if err := j.take(); err != nil || exact {
			return err
		}
	}
}

// rest takes the updates behind the last record of the tree.
func (j *joiner) rest() error {
	j.inTree = false
	for j.merged.current() != nil {
		if err := j.take(); err != nil {
			return err
		}
	}
	if j.behind > 0 {
		j.add(&Damage{Whole: true, What: fmt.Sprintf("the tree lacks what the runs up to %d have of %d keys, and the file says that they were merged",
			j.Meta.MergeRun, j.behind)})
	}
	return nil
}

// take takes the present key of the runs.
func (j *joiner) take() (err error) {
	if u := j.merged.current(); !u.gone {
		j.count(u.key, u.value)
	}
	j.looked = false
	j.key, err = j.merged.next(j.key)
	return err
}

// look sees every update of the present key, the youngest first.
func (j *joiner) look(u *update, age int) {
	if j.looked || age > j.merge || bytes.Compare(u.key, j.Meta.MergedTo) > 0 {
		return
	}
	j.looked = true
	if u.gone == j.inTree || j.inTree && !bytes.Equal(u.value, j.tree) {
		j.behind++
	}
}

func (j *joiner) count(key, value []byte) {
	j.Records++
	j.Bytes += int64(len(key) + len(value))
}
