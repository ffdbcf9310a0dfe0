package db

import (
	"context"
	"time"

	"gotycoon/db/engine/gather"
)

const (
	// how often a server has the engine remove what has expired; a little more or less, so that
	// servers do not meet
	sweepEvery = time.Second
	// expired records are removed so many seconds late: until then those who replace one find its
	// revision
	sweepLate  = 2
	sweepLimit = 1000 // records of one call
	// while there are more, a server rests so many times as long as it has taken
	sweepRests = 3
)

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
