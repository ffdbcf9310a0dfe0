package filestore

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore/paging"
	"gotycoon/db/filestore/run"
	"gotycoon/db/store"
)

// fileRun is a run of the file, with what was found out about it.
type fileRun struct {
	*run.Run

	counting sync.Mutex // held by who counts, so that no two do

	left run.Info // what a merge has not dropped; guarded by runMu

	mu    sync.Mutex
	total *usage // what the file has from this run down; nil: not counted yet; guarded by mu
}

func newFileRun(r *run.Run) *fileRun { return &fileRun{Run: r, left: r.Info} }

// usage returns what the file has from the run down; exact is false for an estimate.
func (r *fileRun) usage() (u usage, exact bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.total != nil {
		return *r.total, true
	}
	return usage{r.About, r.AboutBytes}, false
}

func (r *fileRun) noteTotal(u usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total = &u
}

// A runList is the runs of the file from a transaction on, and how far they are merged.
type runList struct {
	from     int        // number of the transaction
	runs     []*fileRun // newest first
	mergeRun uint64     // see Meta.MergeRun
	mergedTo []byte     // see Meta.MergedTo
}

// merged reports whether the bottom has what r says of key: readers need not ask r.
func (l *runList) merged(r *fileRun, key []byte) bool {
	return l.mergedTo != nil && r.Number() <= l.mergeRun && bytes.Compare(key, l.mergedTo) <= 0
}

// source walks those entries of a run that readers need to ask for. Behind MergedTo a merge has
// dropped blocks: of two runs that are being merged, the older may still have what the newer has no
// more.
func (l *runList) source(r *fileRun, tx *bolt.Tx, from store.Start, w watching) *runSource {
	if l.mergedTo == nil || r.Number() > l.mergeRun {
		return newRunSource(r.Cursor(tx, from.Backward), from, nil, w)
	}
	if from.Backward {
		return newRunSource(r.Cursor(tx, true), from, l.mergedTo, w)
	}
	if from.Edge || bytes.Compare(from.Key, l.mergedTo) <= 0 {
		from = store.Start{Key: l.mergedTo}
	}
	return newRunSource(r.Cursor(tx, false), from, nil, w)
}

// find returns the entry of key in the newest run that has the key; nil where none has it. m is nil
// unless the file is larger than memory.
func (l *runList) find(tx *bolt.Tx, key []byte, m *paging.Mirror) (flagged []byte, err error) {
	if len(l.runs) == 0 {
		return nil, nil
	}
	hash := run.Hash(key)
	for _, r := range l.runs {
		if !r.MayHave(hash) || l.merged(r, key) {
			continue
		}
		var found bool
		if m == nil {
			flagged, found, err = r.Find(tx, key)
		} else {
			flagged, found, err = r.FindOnDisk(tx, key, m)
		}
		if found || err != nil {
			return flagged, err
		}
	}
	return nil, nil
}

const (
	mergeShare = 6  // a merge begins when the runs have this part of the records below them
	mergeRuns  = 32 // or when there are so many
	debtFloor  = 2  // times the limit of an overlay: so much of runs is no debt, however small the file
)

// due reports whether a merge should begin.
func (l *runList) due(m *Meta) bool {
	var entries, size int64
	for _, r := range l.runs {
		entries += r.left.Entries
		size += r.left.Bytes
	}
	return len(l.runs) >= mergeRuns || entries*mergeShare >= m.Count || size*mergeShare >= m.Bytes
}

// debt says how much there is to merge: 1 when a merge is due, 2 when the runs have twice as much.
func (l *runList) debt(m *Meta, limit int64) float64 {
	var size int64
	for _, r := range l.runs {
		size += r.left.Bytes
	}
	return max(float64(len(l.runs))/mergeRuns, float64(size)/float64(max(m.Bytes/mergeShare, debtFloor*limit)))
}

// A runTable knows which runs the file has in which transaction. Their filters and figures are read
// once, when the file is opened, and are in memory from then on.
//
// bbolt numbers its transactions. The writer of a flush or a merge notes the list under its own
// number before it commits, so a reader whose transaction has that number finds the list. For a
// reader older than all lists in memory the list is read from the file.
type runTable struct {
	mu    sync.Mutex // held while lists is replaced
	lists atomic.Pointer[[]*runList]
}

// keptLists is how many lists are kept. A reader asks for its list right after it has begun its
// transaction, so it seldom needs any but the last two.
const keptLists = 8

// load reads the newest list from the file, and forgets all others.
func (t *runTable) load(file *bolt.DB) error {
	return file.View(func(tx *bolt.Tx) error {
		l, err := loadRuns(tx)
		if err != nil {
			l = nil
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		lists := []*runList{}
		if l != nil {
			lists = append(lists, l)
		}
		t.lists.Store(&lists)
		return err
	})
}

func loadRuns(tx *bolt.Tx) (*runList, error) {
	m, err := readMeta(tx)
	if err != nil {
		return nil, err
	}
	runs, err := run.Load(tx)
	if err != nil {
		return nil, err
	}
	l := &runList{from: tx.ID(), mergeRun: m.MergeRun, mergedTo: m.MergedTo}
	for _, r := range slices.Backward(runs) {
		l.runs = append(l.runs, newFileRun(r))
	}
	return l, nil
}

// in returns the list of a transaction.
func (t *runTable) in(tx *bolt.Tx) (*runList, error) {
	for _, l := range slices.Backward(*t.lists.Load()) {
		if l.from <= tx.ID() {
			return l, nil
		}
	}
	return loadRuns(tx)
}

// note says which runs the file has from the writing transaction on.
func (t *runTable) note(tx *bolt.Tx, l *runList) {
	l.from = tx.ID()
	t.mu.Lock()
	defer t.mu.Unlock()
	lists := slices.Clone(*t.lists.Load())
	if n := len(lists); n > 0 && lists[n-1].from == l.from { // of a commit that failed
		lists = lists[:n-1]
	}
	lists = append(lists, l)
	lists = lists[max(0, len(lists)-keptLists):]
	t.lists.Store(&lists)
}

// nextNumber returns the number of the next run. Of two copies of an overlay, which a commit that
// failed and took place can leave, the newer one counts, and they say the same.
func (t *runTable) nextNumber() uint64 {
	if l := t.newest(); l != nil && len(l.runs) > 0 {
		return l.runs[0].Number() + 1
	}
	return 1
}

// newest returns the list of the last writing transaction; nil when it is not known. The caller is
// the writer.
func (t *runTable) newest() *runList {
	lists := *t.lists.Load()
	if len(lists) == 0 {
		return nil
	}
	return lists[len(lists)-1]
}
