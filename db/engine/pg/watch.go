package pg

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A firewall that was started again, or a machine that has vanished, leaves connections on which
// nothing passes any more, and tells nobody. Who waits for an answer there cannot know: it may be a
// commit that waits for its standby. So when an answer takes long, PostgreSQL is asked on another
// connection what the process that should give it does. If there is none, or if it has nothing to
// do, the question or the answer was lost, and the connection is closed: its call ends, and what
// was Unknown is settled. Time limits alone would have to be as long as the longest commit.

// watched are the connections of all pools.
type watched struct {
	mu    sync.Mutex
	links map[*link]bool
}

func (w *watched) add(l *link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.links[l] = true
}

func (w *watched) remove(l *link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.links, l)
}

// late returns connections that have waited for an answer for so long, and since when.
func (w *watched) late(d time.Duration) map[*link]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var late map[*link]int64
	before := time.Now().Add(-d).UnixNano()
	for l := range w.links {
		if at := l.asked.Load(); at != 0 && at < before && unsent(l.Conn) == 0 {
			if late == nil {
				late = map[*link]int64{}
			}
			late[l] = at
		}
	}
	return late
}

// askFor is how long the question may take what a process does.
const askFor = 2 * time.Second

// watch closes connections that were forgotten on their way, until the engine is closed.
func (e *Engine) watch() {
	ticker := time.NewTicker(e.opts.Notice / 3)
	defer ticker.Stop()
	var asker *pgx.Conn // nil: nobody is late
	hangUp := func() {
		if asker != nil {
			ctx, cancel := context.WithTimeout(context.Background(), 0) // without a word of farewell
			defer cancel()
			_ = asker.Close(ctx)
			asker = nil
		}
	}
	defer hangUp()
	var before map[*link]int64 // that had nothing to do at the last look
	for {
		select {
		case <-ticker.C:
		case <-e.ctx.Done():
			return
		}
		late := e.watched.late(e.opts.Notice)
		if len(late) == 0 {
			hangUp()
			before = nil
			continue
		}
		idle, err := e.idle(&asker, late)
		if err != nil {
			hangUp()
			continue
		}
		lost := false
		for l, since := range idle {
			if before[l] == since { // the answer was not on its way, it is still not here
				_ = l.Close()
				lost = true
			}
		}
		if before = idle; lost {
			for _, p := range e.pools() {
				p.Reset() // whoever has forgotten one has forgotten the others
			}
		}
	}
}

// idle returns those of some connections for which PostgreSQL does nothing.
func (e *Engine) idle(asker **pgx.Conn, late map[*link]int64) (map[*link]int64, error) {
	ctx, cancel := context.WithTimeout(e.ctx, askFor)
	defer cancel()
	if *asker == nil {
		c, err := pgx.ConnectConfig(ctx, e.config.Copy())
		if err != nil {
			return nil, err
		}
		*asker = c
	}
	pids := make([]int32, 0, len(late))
	for l := range late {
		pids = append(pids, int32(l.pid.Load()))
	}
	rows, err := (*asker).Query(ctx, "SELECT pid FROM pg_stat_activity WHERE pid = ANY($1) AND coalesce(state, '') NOT LIKE 'idle%'", pids)
	if err != nil {
		return nil, err
	}
	busy, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		return nil, err
	}
	for l := range late {
		for _, pid := range busy {
			if pid == int32(l.pid.Load()) {
				delete(late, l)
			}
		}
	}
	return late, nil
}
