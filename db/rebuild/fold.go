package rebuild

import (
	"bytes"

	"gotycoon/db/filestore"
)

// A fold finds what is remembered of a key: it is shown what several lists have noted of the key,
// the youngest list first. The youngest version counts. A record that has expired or was evicted
// leaves a tombstone without a version, a fade: the key is removed then, and has the version that
// was noted before.
//
//	run 9    tombstone              the key is removed,
//	run 8    set, version 70        and its version is 70
//	bucket   set, version 50
type fold struct {
	e     filestore.LastUpdate
	known bool // e is valid: what older lists have is of no interest
	faded bool // removed by a younger list
}

// note shows a version.
func (o *fold) note(e filestore.LastUpdate) {
	if !o.known {
		o.e, o.known = e, true
		o.e.Removed = e.Removed || o.faded
	}
}

// ofRun shows an entry of a run.
func (o *fold) ofRun(u *update, _ int) {
	if u.noted {
		o.note(u.last)
	} else if u.gone {
		o.faded = true
	}
}

// ofSorter shows what Remember or Fade has stored.
func (o *fold) ofSorter(u *update, _ int) {
	if e, ok := filestore.DecodeEntry(u.value); ok {
		o.note(e)
	} else {
		o.faded = true
	}
}

// fade is stored instead of an entry.
var fade = []byte{0}

// foldVersions joins the fade of a key with the entry before it, so that the last update of a key
// in a sorted chunk is all that counts of the chunk.
func foldVersions(c *chunk) {
	for i := 0; i+1 < len(c.refs); i++ {
		if !c.superseded(i) || !bytes.Equal(c.value(c.refs[i+1]), fade) {
			continue
		}
		value := c.value(c.refs[i])
		if e, ok := filestore.DecodeEntry(value); ok {
			e.Removed = true
			copy(value, filestore.AppendEntry(nil, e))
			c.refs[i+1] = c.refs[i]
		}
	}
}

// A versionMerge gives what is remembered of each key, from lists of updates and, through base, the
// bucket of versions below them.
type versionMerge struct {
	m   *merged
	put func(key []byte, e filestore.LastUpdate) error
	key []byte // scratch
	fold
}

// mergeRuns merges the updates of runs.
func mergeRuns(m *merged, put func(key []byte, e filestore.LastUpdate) error) *versionMerge {
	w := &versionMerge{m: m, put: put}
	m.each = w.fold.ofRun
	return w
}

// mergeStored merges what Remember and Fade have stored.
func mergeStored(m *merged, put func(key []byte, e filestore.LastUpdate) error) *versionMerge {
	w := &versionMerge{m: m, put: put}
	m.each = w.fold.ofSorter
	return w
}

// base gives the keys up to the key of an entry in the bucket below, whose entries come in order.
func (w *versionMerge) base(key []byte, e filestore.LastUpdate) error {
	for {
		u := w.m.current()
		order := -1
		if u != nil {
			order = bytes.Compare(key, u.key)
		}
		if order < 0 {
			return w.put(key, e)
		}
		var below *filestore.LastUpdate
		if order == 0 {
			below = &e
		}
		if err := w.take(below); err != nil || order == 0 {
			return err
		}
	}
}

// rest gives the keys behind the last one of base.
func (w *versionMerge) rest() error {
	for w.m.current() != nil {
		if err := w.take(nil); err != nil {
			return err
		}
	}
	return nil
}

// take gives the present key of the updates; below is its entry in the bucket, if there is one.
func (w *versionMerge) take(below *filestore.LastUpdate) (err error) {
	w.fold = fold{}
	if w.key, err = w.m.next(w.key); err != nil {
		return err
	}
	if below != nil {
		w.note(*below)
	}
	if !w.known {
		return nil
	}
	return w.put(w.key, w.e)
}
