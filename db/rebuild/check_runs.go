package rebuild

import (
	"bytes"
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

// A joiner adds up the records that a file has when its runs are laid over what is below them.
type joiner struct {
	*checker
	merged *merged
	stop   func()
	key    []byte // scratch
}

// join begins with the runs of a file; without runs the records below count alone.
func (c *checker) join(runs []runBucket) (*joiner, error) {
	j := &joiner{checker: c, merged: &merged{}}
	j.stop = c.addRuns(j.merged, runs, c.Meta)
	return j, j.merged.begin()
}

// record takes the next record below the runs.
func (j *joiner) record(key, value []byte) error {
	for {
		u := j.merged.current()
		if u == nil || bytes.Compare(key, u.key) < 0 {
			j.count(key, value)
			return nil
		}
		exact := bytes.Equal(key, u.key)
		if err := j.take(); err != nil || exact {
			return err
		}
	}
}

// rest takes the updates behind the last record.
func (j *joiner) rest() error {
	for j.merged.current() != nil {
		if err := j.take(); err != nil {
			return err
		}
	}
	return nil
}

// take takes the present key of the runs.
func (j *joiner) take() (err error) {
	if u := j.merged.current(); !u.gone {
		j.count(u.key, u.value)
	}
	j.key, err = j.merged.next(j.key)
	return err
}

func (j *joiner) count(key, value []byte) {
	j.Records++
	j.Bytes += int64(len(key) + len(value))
}
