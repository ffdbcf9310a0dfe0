package client

import (
	"context"
	"net"
	"time"
)

// paceSteps is how often a second a paced reader reads.
const paceSteps = 20

// pacedReader reads at most limit bytes a second from a connection. Only the time in which it waits
// for the server counts as silence of the server, not its own pauses, nor the time in which its
// caller does not read.
type pacedReader struct {
	ctx   context.Context
	in    net.Conn
	quiet silence
	limit int64 // 0: none
	begin time.Time
	n     int64
}

// Read reads what has arrived, at most the share of one step.
func (r *pacedReader) Read(p []byte) (int, error) {
	if r.limit > 0 {
		p = p[:min(int64(len(p)), max(1, r.limit/paceSteps))]
		if err := r.pause(); err != nil {
			return 0, err
		}
	}
	r.quiet.Reset(r.quiet.limit)
	n, err := r.in.Read(p)
	r.quiet.Stop()
	r.n += int64(n)
	return n, err
}

// pause waits until the bytes read so far are within the limit.
func (r *pacedReader) pause() error {
	if r.begin.IsZero() {
		r.begin = time.Now()
	}
	due := time.Duration(float64(r.n) / float64(r.limit) * float64(time.Second))
	late := time.NewTimer(due - time.Since(r.begin))
	defer late.Stop()
	select {
	case <-late.C:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}
