package filestore

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore/paging"
	"gotycoon/db/filestore/run"
)

// errVoid says that the file was emptied while it was copied.
var errVoid = errors.New("the file was cleared meanwhile")

// fillOf returns how full the pages of a bucket are made. Runs are never changed. A tree whose
// pages are full to the last byte would be half empty again soon: each new record would split a
// page. A tenth takes two or three new records of 100 bytes.
func fillOf(bucket []byte) float64 {
	if name := string(bucket); name == DataBucket || name == VersionBucket {
		return 0.9
	}
	return 1
}

// bucket copies a bucket, and the buckets inside it.
func (p *copier) bucket(path ...[]byte) error {
	var from []byte
	for first, done := true, false; !done; first = false {
		if err := p.valid(); err != nil {
			return err
		}
		begun, before := time.Now(), p.c.copied.Load()
		var inner []byte
		var err error
		from, inner, done, err = p.some(path, from, first)
		if err == nil {
			err = p.after(p.c.copied.Load()-before, time.Since(begun))
		}
		if err == nil && inner != nil {
			err = p.bucket(append(path[:len(path):len(path)], inner)...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// some copies entries behind a key; last is where to go on. It ends at a bucket inside the bucket,
// which it leaves to the caller.
func (p *copier) some(path [][]byte, from []byte, first bool) (last, inner []byte, done bool, err error) {
	defer func() { // no lock is held: bbolt has ended both transactions
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the file is damaged (%v): stop the server, and see what \"kttimedmgr verify\" says", fault)
		}
	}()
	begun := time.Now()
	err = p.read(func(tx *bolt.Tx) error {
		source := find(tx, path)
		if source == nil {
			return errVoid
		}
		var walks paging.Walks
		var walk paging.Walk
		walks.Begin(&walk, p.passages, source, false)
		walk.Hold() // the commit of the copy reads the values once more
		defer walks.End()
		return p.to.Update(func(into *bolt.Tx) error {
			b, err := makeBucket(into, path)
			if err != nil {
				return err
			}
			b.FillPercent = fillOf(path[0])
			if first && source.Sequence() != b.Sequence() {
				if err := b.SetSequence(source.Sequence()); err != nil {
					return err
				}
			}
			var size int64
			c, n := source.Cursor(), 0
			k, v := c.First()
			if from != nil {
				k, v = c.Seek(from)
				if walk.At(k); bytes.Equal(k, from) {
					k, v = c.Next()
				}
			}
			for ; k != nil; k, v = c.Next() {
				walk.At(k)
				if last = k; v == nil {
					inner = bytes.Clone(k)
					break
				}
				if err := b.Put(k, v); err != nil {
					return err
				}
				size += int64(len(k) + len(v))
				if n++; size >= p.piece || n >= batchEntries || n%askTime == 0 && time.Since(begun) >= pieceTime {
					break
				}
			}
			if done = k == nil; done {
				walk.Over()
			}
			last = bytes.Clone(last)
			p.c.copied.Add(size)
			return nil
		})
	})
	if err != nil && !errors.Is(err, errVoid) {
		err = fmt.Errorf("write %s: %w", p.path, err)
	}
	return last, inner, done, err
}

// find returns the bucket with a path; nil where there is none.
func find(tx *bolt.Tx, path [][]byte) *bolt.Bucket {
	b := tx.Bucket(path[0])
	for _, name := range path[1:] {
		if b != nil {
			b = b.Bucket(name)
		}
	}
	return b
}

func makeBucket(tx *bolt.Tx, path [][]byte) (*bolt.Bucket, error) {
	b, err := tx.CreateBucketIfNotExists(path[0])
	for _, name := range path[1:] {
		if err == nil {
			b.FillPercent = fillOf(path[0])
			b, err = b.CreateBucketIfNotExists(name)
		}
	}
	return b, err
}

// trees copies all buckets that are changed by merges, prunes and clears only: all but the runs and
// the description.
func (p *copier) trees() error {
	var names [][]byte
	err := p.read(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, _ *bolt.Bucket) error {
			if string(name) != run.Bucket && string(name) != MetaBucket {
				names = append(names, bytes.Clone(name))
			}
			return nil
		})
	})
	for _, name := range names {
		if err == nil {
			err = p.bucket(name)
		}
	}
	return err
}

// newRuns copies the finished runs that are not copied yet, and returns how many there were.
func (p *copier) newRuns() (n int, err error) {
	var names [][]byte
	err = p.read(func(tx *bolt.Tx) (err error) {
		names, err = run.Finished(tx)
		return err
	})
	for _, name := range names {
		if err != nil || p.runs[string(name)] {
			continue
		}
		err = p.bucket([]byte(run.Bucket), name)
		p.runs[string(name)] = true
		n++
	}
	return n, err
}

// finish copies the description, and what else has come up, and makes the copy durable. Nobody
// changes the file meanwhile.
func (p *copier) finish() error {
	if err := p.valid(); err != nil {
		return err
	}
	if _, err := p.newRuns(); err != nil {
		return err
	}
	if err := p.missing(); err != nil {
		return err
	}
	if err := p.bucket([]byte(MetaBucket)); err != nil {
		return err
	}
	if err := p.check(); err != nil {
		return err
	}
	var size int64
	if err := p.to.View(func(tx *bolt.Tx) error { size = tx.Size(); return nil }); err != nil {
		return err
	}
	if info, err := p.f.Stat(); err != nil {
		return err
	} else if info.Size() < size { // a page at the end that was never written
		if err := p.f.Truncate(size); err != nil {
			return err
		}
	}
	return p.sync()
}

// missing makes the buckets that were made since the trees were copied: the description of a file
// that is told to keep versions makes an empty one. One that is not empty is a mistake.
func (p *copier) missing() error {
	return p.read(func(tx *bolt.Tx) error {
		return p.to.Update(func(into *bolt.Tx) error {
			return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
				if string(name) == run.Bucket || string(name) == MetaBucket || into.Bucket(name) != nil {
					return nil
				}
				if k, _ := b.Cursor().First(); k != nil {
					return fmt.Errorf("the bucket %q was filled while the file was copied", name)
				}
				_, err := into.CreateBucket(name)
				return err
			})
		})
	})
}

// check compares what can be compared quickly: descriptions and runs.
func (p *copier) check() error {
	return p.read(func(tx *bolt.Tx) error {
		return p.to.View(func(copied *bolt.Tx) error {
			a, b := tx.Bucket([]byte(MetaBucket)).Get([]byte(MetaKey)), copied.Bucket([]byte(MetaBucket)).Get([]byte(MetaKey))
			runs, err := run.Finished(tx)
			if err != nil {
				return err
			}
			theirs, err := run.Finished(copied)
			if err != nil {
				return err
			}
			if !bytes.Equal(a, b) || len(runs) != len(theirs) {
				return errVoid
			}
			_, err = readMeta(copied)
			return err
		})
	})
}

// discard closes and removes the copy.
func (p *copier) discard() error { return errors.Join(removeIfThere(p.path), p.to.Close()) }
