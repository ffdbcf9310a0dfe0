package cluster

import (
	"context"
	"errors"
	"time"
)

// errWorking is why something was not begun that needs the disk.
var errWorking = errors.New("this member waits for its disk, or for the end of its replication")

// beginWork waits until nobody else uses Data, unless ctx ends before. The token may be held for as
// long as the disk hangs.
func (n *Node) beginWork(ctx context.Context) error {
	select {
	case n.work <- struct{}{}:
		n.worked.Add(1)
		if ctx.Err() != nil { // both were ready; what the caller knew may be over
			n.endWork()
			return errWorking
		}
		return nil
	case <-ctx.Done():
		return errWorking
	}
}

func (n *Node) endWork() {
	n.worked.Add(1)
	<-n.work
}

// unlessHung returns what f returns, unless ctx ends before. Then f goes on when the disk does, and
// its result is dropped.
func unlessHung[T any](ctx context.Context, n *Node, f func() (T, error)) (result T, err error) {
	type end struct {
		result T
		err    error
	}
	ended := make(chan end, 1)
	n.mu.Lock()
	if n.ctx.Err() != nil { // Close waits already for what has begun
		n.mu.Unlock()
		return result, errStops
	}
	n.done.Go(func() {
		result, err := f()
		ended <- end{result, err}
	})
	n.mu.Unlock()
	select {
	case e := <-ended:
		return e.result, e.err
	case <-ctx.Done():
		return result, errWorking
	}
}

// working says how far the holders of the token have come.
func (n *Node) working() Disk {
	turns := n.worked.Load()
	return Disk{Waiting: turns%2 == 1, Done: [4]uint64{turns}}
}

// meter measures for how long a disk has done nothing although somebody waits for it.
type meter struct {
	last    Disk
	at      time.Time
	stalled time.Duration
}

// look is called every lookEvery or more often. A longer time between two calls was a pause of the
// process or of the whole machine, and says nothing of the disk.
func (m *meter) look(now time.Time, d Disk) time.Duration {
	if d.Waiting && d == m.last {
		m.stalled += min(now.Sub(m.at), 2*lookEvery)
	} else {
		m.stalled = 0
	}
	m.last, m.at = d, now
	return m.stalled
}
