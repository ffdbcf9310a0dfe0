package filestore

import (
	"errors"
	"log/slog"
	"math"
	"os"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore/paging"
)

// opened is a file that is open, with the lists of its runs. A compaction replaces the whole of it:
// transactions are numbered in each file anew, so the lists of one file mean nothing in another.
//
// A reader holds a reference from before it begins its transaction until after it has ended it. The
// file that a compaction has replaced is closed when the last reference is gone. Rejected: leaving
// the wait to Close of bbolt, which has the lock of bbolt's meta pages while it waits. Every other
// reader of the file would need that lock to end its transaction, and would so wait for the slowest
// one, which may be a backup.
type opened struct {
	file *bolt.DB
	runs *runTable
	info os.FileInfo // which file it is

	passages   *paging.Passages              // its long scans
	mirror     atomic.Pointer[paging.Mirror] // nil: memory has room for the file
	outgrown   []*paging.Mirror              // smaller ones, of before; guarded by runMu
	unmirrored bool                          // there should be a mirror, and the log says so; guarded by runMu

	refs   atomic.Int64  // readers, plus one while it is the current one; 0 is final
	unused chan struct{} // closed with the last reference
}

func newOpened(file *bolt.DB, runs *runTable, info os.FileInfo, asked *atomic.Uint64) *opened {
	o := &opened{file: file, runs: runs, info: info, passages: &paging.Passages{Asked: asked}, unused: make(chan struct{})}
	o.refs.Store(1)
	return o
}

// again returns the same file for the readers that come from now on.
func (o *opened) again() *opened { return newOpened(o.file, o.runs, o.info, o.passages.Asked) }

func (o *opened) release() {
	if o.refs.Add(-1) == 0 {
		o.dropMirror()
		close(o.unused)
	}
}

// dropMirror is called when nobody reads the file any more.
func (o *opened) dropMirror() {
	if m := o.mirror.Swap(nil); m != nil {
		o.outgrown = append(o.outgrown, m)
	}
	for _, m := range o.outgrown {
		_ = m.Close() // the addresses stay taken
	}
	o.outgrown = nil
}

// mapSize is reserved address space, not memory. While the file fits in it, a checkpoint never has
// to wait for readers in order to map the file anew.
const mapSize = 64 << 30

// mapAtLeast returns the bytes of addresses that a file is mapped to.
func mapAtLeast() int64 { return min(int64(mapSize), math.MaxInt/4) } // for addresses of 32 bits

// mirrorShare is which part of the memory a file takes from which on its lookups are mirrored. Each
// file is looked at by itself: nobody adds up those that share the memory.
const mirrorShare = 2

// reflect makes a mirror when the file is so large that pages of it may have to leave memory, and a
// larger one when the file has outgrown its mirror. path is the name of the file now: bbolt knows
// the one under which it has opened the file, and a compaction renames its copy afterwards. The
// caller holds runMu, or is alone.
func (o *opened) reflect(path string, memory int64, log *slog.Logger) {
	most := memory / mirrorShare
	size := int64(0)
	_ = o.file.View(func(tx *bolt.Tx) error {
		size = tx.Size()
		return nil
	})
	old := o.mirror.Load()
	if most <= 0 || size <= most || old != nil && size <= old.Size() {
		return
	}
	m, err := paging.NewMirror(path, o.info, max(mapAtLeast(), 2*size))
	switch {
	case err == nil:
		o.mirror.Store(m)
		o.unmirrored = false
		if old != nil { // readers may have it
			o.outgrown = append(o.outgrown, old)
		}
	case !o.unmirrored && !errors.Is(err, errors.ErrUnsupported):
		o.unmirrored = true
		log.Warn("pages that clients read often may leave memory, until a checkpoint can map the file a second time: "+err.Error(),
			slog.String("path", path))
	}
}
