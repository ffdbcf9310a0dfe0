package ulog

import (
	"context"
	"time"
)

// pollInterval is how often Wait looks at a log that another process writes. The original's slaves look as often.
const pollInterval = 100 * time.Millisecond

// Wait returns nil when Next may return more than io.EOF, the error of ctx, or why the log will not grow any more.
func (r *Reader) Wait(ctx context.Context) error {
	if r.log == nil {
		return r.poll(ctx)
	}
	for {
		more, err := r.log.moreThan(r.seg, r.pos)
		if more == nil || err != nil {
			return err
		}
		select {
		case <-more: // or the log has ended
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *Reader) poll(ctx context.Context) error {
	t := time.NewTimer(pollInterval)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// More returns nil when Next may return more than io.EOF, or a channel that is closed when that may have changed. It is for readers of an
// open Log; the error says why the log will not grow any more.
func (r *Reader) More() (<-chan struct{}, error) { return r.log.moreThan(r.seg, r.pos) }

// safeTail returns up to where readers may read.
func (l *Log) safeTail() tail {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.safe
}

// End returns the stamp of the newest record that readers may read, 0 where there is none. What comes later has a greater one, also after a
// restart.
func (l *Log) End() Stamp { return l.safeTail().last }

// moreThan returns nil when readers may read beyond a position, or a channel that is closed when that may have changed.
func (l *Log) moreThan(seg uint64, off int64) (<-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.safe.seg > seg || l.safe.seg == seg && l.safe.off > off {
		return nil, nil
	}
	if err := l.usableLocked(); err != nil {
		return nil, err
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed, nil
}
