package util

import (
	"context"
	"fmt"
	"slices"

	"gotycoon/db"
	"gotycoon/db/engine"
	"gotycoon/db/engine/pg"
	"gotycoon/ulog"
)

// engineLoad stores the records of a snapshot or database file. Other records of the database stay.
func engineLoad(ctx context.Context, c *call, _ *engineOptions) error {
	path := ""
	if len(c.args) == 3 {
		path = c.args[2]
	}
	return c.withEngine(ctx, func(e *pg.Engine, catalog *db.Catalog) error {
		d := catalog.Lookup(c.args[1])
		if d == nil {
			return fmt.Errorf("the engine has no database %q", c.args[1])
		}
		records, end, err := c.openSource(path, d)
		if err != nil {
			return err
		}
		defer end()
		sid := e.Setup().SID
		n, err := e.Load(ctx, func() (engine.Change, error) { return nextRecord(records, sid, d) })
		if err != nil {
			return fmt.Errorf("after %d records: %w; the same command can be given again", n, err)
		}
		_, err = fmt.Fprintf(c.out, "%d records were loaded\n", n)
		return err
	})
}

// nextRecord reads a record of a source, which is stored as it is, with its expiration time.
func nextRecord(from source, sid uint16, into *db.DB) (engine.Change, error) {
	key, stored, err := from.Next()
	if err != nil {
		return engine.Change{}, err
	}
	key, stored = slices.Clone(key), slices.Clone(stored)
	xt, value, ok := into.Split(stored)
	if !ok {
		return engine.Change{}, fmt.Errorf("the record %.40q has no expiration time", key)
	}
	dbid := uint16(into.Index())
	return engine.Change{
		Key: engine.Key{DB: dbid, Key: key}, Value: value, XT: xt, If: engine.Any,
		Log: []ulog.Update{{SID: sid, DBID: dbid, Op: ulog.OpSet, Key: key, Value: stored}},
	}, nil
}
