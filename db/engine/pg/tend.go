package pg

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// clock is PostgreSQL's, by ours: what it said last, and how much time has passed since. Whoever
// sets the clock of this machine changes nothing.
type clock struct{ last atomic.Pointer[moment] }

type moment struct {
	micros int64 // of PostgreSQL
	heard  time.Time
}

func (k *clock) set(ctx context.Context, c *pgx.Conn) error {
	var micros int64
	asked := time.Now()
	err := c.QueryRow(ctx, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").Scan(&micros)
	if err == nil {
		k.last.Store(&moment{micros, asked.Add(time.Since(asked) / 2)})
	}
	return err
}

func (k *clock) now() time.Time {
	m := k.last.Load()
	return time.UnixMicro(m.micros + time.Since(m.heard).Microseconds())
}

const (
	beat        = time.Second // between two looks at the engine's clock
	foldEvery   = 5           // beats between folds of the counts, and looks at the log's size
	leastRotate = time.Minute // a settled group must not find its note gone
)

// tend looks after the engine until it is closed. Servers do so without knowing of each other: who
// comes second finds nothing to do. What fails is tried again at the next beat.
func (e *Engine) tend() {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ticker.C:
		case <-e.ctx.Done():
			return
		}
		_ = e.with(e.ctx, e.others, func(c *pgxpool.Conn) error {
			ctx, cancel := context.WithTimeout(e.ctx, 10*time.Second)
			defer cancel()
			if err := e.clock.set(ctx, c.Conn()); err != nil || e.opts.ReadOnly || n%foldEvery != 0 {
				return err
			}
			if _, err := c.Exec(ctx, "SELECT fold()"); err != nil {
				return err
			}
			if err := e.rotate(ctx, c); err != nil || !e.meta.Log {
				return err
			}
			return e.noteHorizon(ctx, c)
		})
	}
}

// rotate goes on to the next table of groups when the present one has groups for half of the time,
// or a third of the bytes, that the log is kept.
func (e *Engine) rotate(ctx context.Context, c *pgxpool.Conn) error {
	_, err := c.Exec(ctx, "SELECT rotate($1, $2, $3)", leastRotate.Seconds(), max(e.opts.KeepFor/2, leastRotate).Seconds(), e.opts.KeepBytes/3)
	if isCode(err, "55P03") { // somebody reads the table: the next time
		return nil
	}
	return err
}
