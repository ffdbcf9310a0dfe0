package rebuild

import (
	"sync/atomic"

	"gotycoon/internal/vfs"
)

const (
	outputBlock   = 1 << 20 // bytes of one write
	outputBlocks  = 4       // in memory
	writebackStep = 32 << 20
)

// An output writes a file from one offset on, in blocks that a goroutine of its own writes.
type output struct {
	f     vfs.File
	off   int64 // of the block being filled
	block []byte

	full    chan block
	free    chan []byte
	stopped chan struct{}
	err     atomic.Pointer[error] // of the first write that failed
}

type block struct {
	off  int64
	data []byte
}

// newOutput starts the goroutine that close ends.
func newOutput(f vfs.File, off int64) *output {
	o := &output{f: f, off: off, full: make(chan block), free: make(chan []byte, outputBlocks), stopped: make(chan struct{})}
	for range outputBlocks - 1 {
		o.free <- make([]byte, 0, outputBlock)
	}
	o.block = make([]byte, 0, outputBlock)
	go o.run()
	return o
}

func (o *output) run() {
	defer close(o.stopped)
	var flushed int64
	for b := range o.full {
		if o.failure() == nil {
			if _, err := o.f.WriteAt(b.data, b.off); err != nil {
				o.err.Store(&err)
			}
			if end := b.off + int64(len(b.data)); end-flushed >= writebackStep {
				startWriteback(o.f, flushed, end-flushed)
				flushed = end
			}
		}
		if cap(b.data) > outputBlock { // of one large record
			b.data = make([]byte, 0, outputBlock)
		}
		o.free <- b.data[:0]
	}
}

// take returns the next n bytes of the file, zeros, to be filled before the next call.
func (o *output) take(n int) []byte {
	if len(o.block)+n > cap(o.block) {
		o.hand()
		if n > cap(o.block) {
			o.block = make([]byte, 0, n)
		}
	}
	at := len(o.block)
	o.block = o.block[:at+n]
	clear(o.block[at:])
	return o.block[at:]
}

// hand passes the block on and goes on with a free one.
func (o *output) hand() {
	if len(o.block) == 0 {
		return
	}
	o.full <- block{o.off, o.block}
	o.off += int64(len(o.block))
	o.block = <-o.free
}

// failure returns the error of a write, if there was one.
func (o *output) failure() error {
	if err := o.err.Load(); err != nil {
		return *err
	}
	return nil
}

// close writes the rest and ends the goroutine. Closing twice is fine.
func (o *output) close() error {
	if o.full != nil {
		o.hand()
		close(o.full)
		<-o.stopped
		o.full = nil
	}
	return o.failure()
}
