package timed

import (
	"context"
	"errors"
	"fmt"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/tools/show"
)

// merger stores the records of one database in another.
type merger struct {
	*call
	into     *db.DB
	store    func(p *db.Pending, key, value []byte, xt record.XT) error
	pending  db.Pending
	progress show.Progress
	n        int
}

// merge stores the records of other databases.
func merge(_ context.Context, c *call) error {
	add := c.flags.Bool("add", false, "only records that are not there")
	replace := c.flags.Bool("rep", false, "only records that are there")
	appended := c.flags.Bool("app", false, "values behind those that are there")
	if err := c.parse(2, -1); err != nil {
		return err
	}
	into, err := c.open(c.args[0], creates)
	if err != nil {
		return err
	}
	m := &merger{call: c, into: into, store: into.Set, progress: c.steps("records", -1)}
	switch {
	case *add:
		m.store = into.Add
	case *replace:
		m.store = into.Replace
	case *appended:
		m.store = into.Append
	}
	err = m.all(c.args[1:])
	m.progress.End()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "%d records were merged successfully\n", m.n)
	return err
}

func (m *merger) all(sources []string) error {
	for _, path := range sources {
		from, err := m.open(path, reads)
		if err != nil {
			return err
		}
		if err := from.Stored(func(key, stored []byte) error { return m.one(from, key, stored) }); err != nil {
			return m.failed("DB::merge", m.args[0], err)
		}
	}
	return m.failed("DB::merge", m.args[0], m.pending.Wait())
}

// one takes over a record that has not expired, with its expiration time.
func (m *merger) one(from *db.DB, key, stored []byte) error {
	at, value, live := from.SplitStored(stored)
	if !live {
		return nil
	}
	xt := record.Never
	if at != record.MaxXT {
		xt = record.XT(-at)
	}
	err := m.store(&m.pending, key, value, xt)
	if err != nil && !errors.Is(err, dberr.ErrDuplicate) && !errors.Is(err, dberr.ErrNoRecord) {
		return err
	}
	m.n++
	m.progress.Done(1, len(key)+len(stored))
	return nil
}
