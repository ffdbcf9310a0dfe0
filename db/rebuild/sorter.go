package rebuild

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"gotycoon/internal/vfs"
)

// A sorter takes updates in any order and gives back the last update of every key, in order. A
// goroutine sorts them chunk by chunk. Chunks that do not fit in memory go to a file whose name is
// removed at once, so that nothing is left of the file when the process dies.
//
//	add ──► chunk ──(full)──► goroutine: sort ──► held ──(too many)──► write: spill ┐
//	                                               │                          ...   ├──► merge
//	                                               └────────────────────────────────┘
type sorter struct {
	fs    vfs.FS
	name  string
	limit int64        // bytes of a chunk
	fold  func(*chunk) // joins updates of a key in a sorted chunk; nil: the last update counts

	chunk *chunk
	first []byte // the key that was added first
	same  int    // how many bytes all keys have in common with first; -1: there is no key yet
	made  int    // chunks made; the next one's number

	work    chan *chunk
	free    chan *chunk
	stopped chan struct{}
	err     atomic.Pointer[error] // of the goroutine

	dropped int  // chunks with a smaller number have been made void by a clear
	cleared bool // the records of a base do not count

	// The following belong to the goroutine until finish.
	held   []*chunk // sorted, the oldest first
	f      vfs.File // of the spills; nil: none yet
	spills []spill
	end    int64 // of the file
}

const (
	chunksHeld = 9              // sorted chunks in memory
	chunks     = chunksHeld + 3 // one more is being filled, one is being sorted, one is between
)

// A chunk is a part of the updates, in memory.
type chunk struct {
	number int // grows with time
	data   []byte
	refs   []ref
	skip   int // bytes that all its keys have in common
}

// A ref is one update of a chunk.
type ref struct {
	prefix uint64 // of the key, behind the bytes that all keys have in common
	off    uint32 // of the key in data; the value follows
	ksize  uint32
	vsize  uint32 // removed: the key is removed
}

const (
	removed = ^uint32(0)
	refSize = 24
	maxOff  = 1 << 31 // bytes of a chunk
)

// A spill is a sorted chunk in the file.
type spill struct {
	off, end int64
	number   int // of the chunk
}

func newSorter(fs vfs.FS, name string, memory int64) *sorter {
	s := &sorter{fs: fs, name: name, limit: min(memory/chunks, maxOff), same: -1}
	s.work, s.free, s.stopped = make(chan *chunk), make(chan *chunk, chunks), make(chan struct{})
	s.chunk = s.fresh()
	go s.run()
	return s
}

// fresh returns an empty chunk.
func (s *sorter) fresh() *chunk {
	c := &chunk{}
	switch {
	case s.made >= chunks:
		c = <-s.free
		c.data, c.refs = c.data[:0], c.refs[:0]
	case s.made > 0: // there will be as much again
		c.data = make([]byte, 0, s.limit)
	}
	c.number = s.made
	s.made++
	return c
}

// add takes one update.
func (s *sorter) add(key, value []byte, gone bool) error {
	c := s.chunk
	size := int64(len(c.data) + len(key) + len(value))
	if size+refSize*int64(len(c.refs)) > s.limit && len(c.refs) > 0 {
		if err := s.pass(); err != nil {
			return err
		}
		c = s.chunk
	}
	s.compare(key)
	c.room(len(key)+len(value), s.limit)
	r := ref{off: uint32(len(c.data)), ksize: uint32(len(key)), vsize: uint32(len(value))}
	if gone {
		r.vsize = removed
	}
	c.data = append(append(c.data, key...), value...)
	c.refs = append(c.refs, r)
	return nil
}

// compare finds out how many first bytes all keys have in common. Sorting skips these bytes, so
// that the 8 bytes of ref.prefix tell most keys apart.
func (s *sorter) compare(key []byte) {
	if s.same < 0 {
		s.first, s.same = bytes.Clone(key), len(key)
	}
	if len(key) >= s.same && bytes.Equal(key[:s.same], s.first[:s.same]) {
		return
	}
	n := 0
	for n < min(len(key), s.same) && key[n] == s.first[n] {
		n++
	}
	s.same = n
}

// pass gives the chunk to the goroutine and goes on with another chunk.
func (s *sorter) pass() error {
	s.chunk.skip = s.same
	s.work <- s.chunk
	s.chunk = s.fresh()
	return s.failure()
}

// failure returns the error of the goroutine, if there was one.
func (s *sorter) failure() error {
	if err := s.err.Load(); err != nil {
		return fmt.Errorf("sort records in %s: %w", s.name, *err)
	}
	return nil
}

// clear forgets all updates so far, and the records of a base file.
func (s *sorter) clear() error {
	s.chunk.data, s.chunk.refs = s.chunk.data[:0], s.chunk.refs[:0]
	s.dropped, s.cleared = s.chunk.number, true
	return s.failure()
}

// run sorts chunks, and writes the oldest when there are too many, until stop.
func (s *sorter) run() {
	defer close(s.stopped)
	buf := make([]byte, 0, spillBuffer)
	for c := range s.work {
		if s.failure() == nil {
			s.arrange(c)
		}
		if s.held = append(s.held, c); len(s.held) <= chunksHeld {
			continue
		}
		oldest := s.held[0]
		s.held = append(s.held[:0], s.held[1:]...)
		if s.failure() == nil {
			if err := s.write(oldest, buf); err != nil {
				s.err.Store(&err)
			}
		}
		s.free <- oldest
	}
}

func (s *sorter) arrange(c *chunk) {
	if c.sort(); s.fold != nil {
		s.fold(c)
	}
}

// write writes a sorted chunk behind the others.
func (s *sorter) write(c *chunk, buf []byte) error {
	if s.f == nil {
		f, err := s.fs.OpenFile(s.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, filePerm)
		if err != nil {
			return err
		}
		s.f = f
		if err := s.fs.Remove(s.name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	r, err := c.write(s.f, s.end, buf)
	s.spills, s.end = append(s.spills, r), r.end
	return err
}

// finish waits for the goroutine and sorts the last chunk. Nothing can be added any more.
func (s *sorter) finish() error {
	s.stop()
	s.chunk.skip = max(s.same, 0)
	s.arrange(s.chunk)
	s.held = append(s.held, s.chunk)
	return s.failure()
}

func (s *sorter) stop() {
	if s.work != nil {
		close(s.work)
		<-s.stopped
		s.work = nil
	}
}

// close ends the goroutine and gives the file back.
func (s *sorter) close() error {
	s.stop()
	if s.f == nil {
		return nil
	}
	f := s.f
	s.f = nil
	return f.Close()
}
