package filestore

import (
	"os"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
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

	refs   atomic.Int64  // readers, plus one while it is the current one; 0 is final
	unused chan struct{} // closed with the last reference
}

func newOpened(file *bolt.DB, runs *runTable, info os.FileInfo) *opened {
	o := &opened{file: file, runs: runs, info: info, unused: make(chan struct{})}
	o.refs.Store(1)
	return o
}

// again returns the same file for the readers that come from now on.
func (o *opened) again() *opened { return newOpened(o.file, o.runs, o.info) }

func (o *opened) release() {
	if o.refs.Add(-1) == 0 {
		close(o.unused)
	}
}
