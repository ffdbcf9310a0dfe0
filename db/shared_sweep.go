package db

import (
	"context"
	"math/rand/v2"
	"time"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/ulog"
)

const (
	// how often a server has the engine remove what has expired; a little more or less, so that
	// servers do not meet
	sweepEvery = time.Second
	// expired records are removed so many seconds late: until then those who replace one find its
	// revision
	sweepLate  = 2
	sweepLimit = 1000 // records of one call
)

// sweepShared removes what has expired from databases that an engine keeps. Each server does so,
// and the engine sees to it that two do not wait for each other.
func (c *Catalog) sweepShared() {
	if c.groups == nil || c.opts.ReadOnly {
		return
	}
	for {
		pause := time.NewTimer(sweepEvery/2 + rand.N(sweepEvery))
		select {
		case <-c.quit:
			pause.Stop()
			return
		case <-pause.C:
		}
		for _, d := range c.dbs {
			_, _ = d.shared.swept(sweepLate) // an error: the next time
		}
	}
}

// swept removes some records that have been expired for so many seconds, and reports whether there
// may be more.
func (s *shared) swept(late int64) (more bool, err error) {
	n, err := gather.Ask(context.Background(), s.groups, func(ctx context.Context) (int, error) {
		return s.engine.Sweep(ctx, s.db.index, s.engine.Now()-late, sweepLimit)
	})
	s.db.sweeper.expired.Add(int64(n))
	return n == sweepLimit, engineError(err)
}

// sweep removes what has expired.
func (s *shared) sweep(heed Heed) error {
	for more := true; more; {
		var err error
		if err = heed.Now(); err == nil {
			more, err = s.swept(0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// freeze returns the records of a moment.
func (s *shared) freeze() (*Frozen, error) {
	snap, err := gather.Ask(context.Background(), s.groups, func(ctx context.Context) (engine.Snapshot, error) {
		return s.engine.Snapshot(ctx, s.db.index)
	})
	if err != nil {
		return nil, engineError(err)
	}
	n, err := gather.Ask(context.Background(), s.groups, snap.Count)
	if err != nil {
		_ = snap.Close()
		return nil, engineError(err)
	}
	_, bytes, err := s.counts()
	if err != nil {
		_ = snap.Close()
		return nil, err
	}
	at := snap.Stamp()
	if at == 0 {
		at = ulog.Stamp(s.db.now().UnixMilli() * nanosPerMilli)
	}
	return &Frozen{stamp: at, size: bytes, order: s.db.expr.Params.RComp, records: &moment{s, snap, n}}, nil
}
