package filestore

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"gotycoon/internal/procinfo"
	"gotycoon/internal/vfs"
)

// Errors of a compaction. After each of them the file is as it was.
var (
	ErrCompactAborted = errors.New("the compaction was aborted")
	ErrCompactBehind  = errors.New("clients write faster than the compaction copies, and would have been slowed down: " +
		"compact the file again in a quieter hour")
	errClosed = errors.New("the database is being closed")
)

// CompactOptions say how a file is compacted.
type CompactOptions struct {
	Keep func() int64 // bytes that shall stay free on the disk, asked again and again; nil: 0
	Fast bool         // without a rest between two pieces
}

func (o *CompactOptions) keep() int64 {
	if o.Keep == nil {
		return 0
	}
	return o.Keep()
}

// A Compaction is one run of a compaction, under way or ended.
type Compaction struct {
	Before, After int64 // size of the file in bytes; After is valid when it has ended well

	opts   CompactOptions
	began  time.Time
	copied atomic.Int64
	total  atomic.Int64 // about
	done   chan struct{}
	err    error // valid when done is closed

	quit     chan struct{}
	quitOnce sync.Once
	closing  atomic.Bool // it was stopped because the store is being closed
}

// Done is closed when the compaction has ended.
func (c *Compaction) Done() <-chan struct{} { return c.done }

// Err returns how the compaction has ended; it may be called after that.
func (c *Compaction) Err() error { return c.err }

// Abort makes the compaction end soon.
func (c *Compaction) Abort() { c.quitOnce.Do(func() { close(c.quit) }) }

// stopped returns an error when the compaction shall end.
func (c *Compaction) stopped() error {
	select {
	case <-c.quit:
		return ErrCompactAborted
	default:
		return nil
	}
}

// rest waits for a time, or until the compaction shall end.
func (c *Compaction) rest(pause time.Duration) error {
	if c.opts.Fast || pause <= 0 {
		return c.stopped()
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-c.quit:
		return ErrCompactAborted
	case <-t.C:
		return nil
	}
}

// compactor is what a store knows of its compactions.
type compactor struct {
	// Guarded by runMu:
	paused  bool         // merges wait, because the tree is being copied
	pending *pendingSwap // it is not settled which file has the name; nil: it is

	clears  atomic.Uint64  // how often the file was emptied
	retired sync.WaitGroup // goroutines that close replaced files
	disk    disk

	mu     sync.Mutex  // guards the fields below; nothing else is locked under it
	closed bool        // no compaction may begin any more
	now    *Compaction // under way, or nil
	last   *Compaction // the latest one that has ended, or nil
	ended  int64       // compactions that have ended well
	failed int64       // compactions that have ended otherwise
	off    float64     // size of the file after the latest, as a multiple of the guess; 0: unknown
}

// A pendingSwap is a rename of which it is not known yet whether it took place, or will last.
type pendingSwap struct {
	path string  // of the file
	made string  // where the copy was before
	copy *opened // the compacted file
}

// disk is what a compaction asks of the system. Tests let it fail.
type disk struct {
	rename  func(from, to string) error
	syncDir func(dir string) error
	sync    func(file *bolt.DB) error
	space   func(dir string) (total, free int64, err error)
	step    func(name string) error // called between the steps
}

func (c *compactor) init() {
	c.disk = disk{
		rename:  os.Rename,
		syncDir: vfs.OS{}.SyncDir,
		sync:    (*bolt.DB).Sync,
		space:   procinfo.Space,
		step:    func(string) error { return nil },
	}
}

// running returns the compaction that is under way, or nil.
func (c *compactor) running() *Compaction {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// begin registers a compaction; the result is the one that is under way if there is one already.
func (c *compactor) begin(n *Compaction) (now *Compaction, mine bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, false, errClosed
	case c.now != nil:
		return c.now, false, nil
	}
	c.now = n
	return n, true, nil
}

// end says how the compaction has ended, and lets go those who wait for it.
func (c *compactor) end(n *Compaction, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n.err = err
	c.now, c.last = nil, n
	if err == nil {
		c.ended++
	} else {
		c.failed++
	}
	close(n.done)
}

// close ends the compaction under way, waits for it, and lets no other begin.
func (c *compactor) close() {
	c.mu.Lock()
	c.closed = true
	now := c.now
	c.mu.Unlock()
	if now != nil {
		now.closing.Store(true)
		now.Abort()
		<-now.done
	}
}

// learn compares the size of a compacted file with the guess.
func (c *compactor) learn(size, guess int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const least, most = 0.25, 4
	c.off = min(max(float64(size)/float64(guess), least), most)
}

// guessOff returns how many times the guess a compacted file is.
func (c *compactor) guessOff() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.off == 0 {
		return 1
	}
	return c.off
}

// CompactionStats are the figures of a store's compactions since it was opened.
type CompactionStats struct {
	Running bool
	Began   time.Time // valid with Running
	Copied  int64     // bytes of keys and values that the one under way has copied
	Total   int64     // about how many bytes it has to copy
	Ended   int64     // compactions that have ended well
	Failed  int64     // compactions that have ended otherwise
	Known   bool      // one has ended: the fields below are valid
	Before  int64     // bytes of the file before the latest one
	After   int64     // and after it, if it has ended well
	Err     error     // why the latest one has not
}

// CompactionStats returns the figures.
func (c *compactor) stats() CompactionStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := CompactionStats{Ended: c.ended, Failed: c.failed}
	if c.now != nil {
		st.Running, st.Began, st.Copied, st.Total = true, c.now.began, c.now.copied.Load(), c.now.total.Load()
	}
	if c.last != nil {
		st.Known, st.Before, st.After, st.Err = true, c.last.Before, c.last.After, c.last.err
	}
	return st
}
