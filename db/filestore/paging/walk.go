package paging

import bolt "go.etcd.io/bbolt"

// A Walk watches a cursor of a bucket on its way through one call. The zero Walk watches nothing.
//
// A Walk has the map of the file as bbolt had it at Begin. bbolt does not replace the map before a
// transaction that reads has ended, nor before one that writes commits; so that is when Walks.End
// must have been called.
type Walk struct {
	passages *Passages // nil: it watches nothing
	file     file
	root     uint64
	backward bool
	over     bool // the cursor has passed the last element
	held     bool // nothing is given back before the end
	lookups  bool // it watches lookups, with which nobody goes on

	way     []step   // of the key before
	page    uint64   // where the cursor is
	passage *passage // nil: the cursor has not left its first page
	next    *Walk    // see Walks
}

// Walks are the walks of one transaction, which end with it.
type Walks struct{ first *Walk }

// Begin begins to watch a cursor of a bucket. p may be nil: then nothing is watched.
func (ws *Walks) Begin(w *Walk, p *Passages, b *bolt.Bucket, backward bool) {
	if p == nil || !supported || b.RootPage() == 0 { // a bucket inside the page of another one
		return
	}
	*w = Walk{passages: p, file: fileOf(b.Tx()), root: uint64(b.RootPage()), backward: backward, next: ws.first}
	ws.first = w
}

// End ends all walks. The transaction is still open.
func (ws *Walks) End() {
	for w := ws.first; w != nil; {
		next := w.next
		w.end()
		w = next
	}
	ws.first = nil
}

// Hold keeps the pages of the walk in memory until it ends: somebody reads them again until then.
func (w *Walk) Hold() { w.held = true }

// At is called when the cursor has come to an element, before the element is read: the system may
// be asked for its pages meanwhile. key is the element's name.
func (w *Walk) At(key []byte) {
	if w.passages == nil || len(key) == 0 {
		return
	}
	w.at(key)
}

func (w *Walk) at(key []byte) {
	at, ok := w.file.offset(key)
	page := uint64(at / w.file.page)
	if !ok || page == w.page {
		return
	}
	if w.page != 0 { // page 0 has no elements: this is not the first page
		entered := false
		if w.passage == nil {
			w.passage, entered = w.passages.take(w.page, page, w.backward)
		}
		if !entered {
			w.passage.enter(w.file, w.root, page, key)
		}
		if !w.held {
			w.passage.giveBack(w.file, keep+batch)
		}
	}
	w.page = page
}

// Before is called before a key is looked up, where many are looked up in their order: nobody knows
// which leaves come next then, but in which leaf the lookup begins. Nothing is asked for: the
// lookup touches the leaf at once, and most likely needs no other.
func (w *Walk) Before(key []byte) {
	if w.passages == nil {
		return
	}
	d := descent{file: w.file, way: w.way[:0]}
	leaf, ok := d.seek(w.root, key, len(w.way)) // the first one finds out how deep leaves are
	w.way = d.way
	if !ok || leaf == w.page {
		return
	}
	if w.passage == nil {
		w.passage, w.lookups = &passage{of: w.passages}, true
	}
	w.passage.settle(w.file)
	w.passage.before(w.file, leaf)
	if behind, ok := d.next(false, func(uint64) {}); ok { // where bbolt looks next
		w.passage.before(w.file, behind)
	}
	w.passage.giveBack(w.file, keep+batch)
	w.page = leaf
}

// Over is called when the cursor has passed the last element: the scan has come to its end.
func (w *Walk) Over() {
	if w.passages != nil && w.passage == nil && w.page != 0 {
		w.passage = w.passages.ending(w.page, w.backward)
	}
	if w.passage != nil && !w.held {
		w.passage.settle(w.file)
		w.passage.giveBack(w.file, 0)
	}
	w.over = true
}

func (w *Walk) end() {
	if w.passage != nil {
		if w.held && w.over {
			w.passage.settle(w.file)
			w.passage.giveBack(w.file, 0)
		} else if w.held {
			w.passage.giveBack(w.file, keep+batch)
		}
		if !w.over && !w.lookups { // somebody may go on with it
			w.passage.at = w.page
			w.passages.park(w.passage)
		}
	}
	*w = Walk{}
}
