package mem

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"gotycoon/db/engine"
)

// Snapshot returns a database as it is, with what is claimed.
func (v *Server) Snapshot(ctx context.Context, db uint16) (engine.Snapshot, error) {
	return ask(ctx, v, Call{Name: Snapshot}, func() (engine.Snapshot, error) {
		s := v.store
		s.mu.Lock()
		defer s.mu.Unlock()
		f := &frozen{v: v, table: s.table(db).clone()}
		newest := slices.SortedFunc(maps.Values(s.claimed), func(a, b claimed) int { return cmp.Compare(b.Revision, a.Revision) })
		for _, c := range newest {
			if _, there := f.table.records[string(c.Key.Key)]; c.made && c.DB == db && !there {
				f.table.put(c.Record)
			}
		}
		if !s.opts.NoLog {
			f.stamp = s.log.horizon()
		}
		return f, nil
	})
}

// frozen is a database at one moment.
type frozen struct {
	v     *Server
	table *table
	stamp engine.Stamp
}

func (f *frozen) Stamp() engine.Stamp { return f.stamp }

func (f *frozen) Count(ctx context.Context) (int64, error) {
	return ask(ctx, f.v, Call{Name: Count}, func() (int64, error) { return int64(len(f.table.records)), nil })
}

func (f *frozen) Scan(ctx context.Context, s engine.Scan) (engine.Page, error) {
	return ask(ctx, f.v, Call{Name: Scan}, func() (engine.Page, error) { return f.table.page(s), nil })
}

func (f *frozen) Close() error { return nil }
