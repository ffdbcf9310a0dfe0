package db

import (
	"gotycoon/db/expr"
	"gotycoon/db/filestore"
	"gotycoon/ulog"
)

// Measures are figures of a database for those who watch it.
type Measures struct {
	Records int64           // about: see filestore.(*Store).Estimate; -1 for a text database
	Bytes   int64           // see Size
	Expired int64           // records removed since the start because their time was over
	Evicted int64           // records removed since the start because of a limit
	File    filestore.Stats // of a database OnDisk, text databases included
}

// Measure returns the figures. It takes microseconds, but for a file some milliseconds when many keys are new.
func (d *DB) Measure() Measures {
	m := Measures{Records: -1, Bytes: d.Size(), Expired: d.sweeper.expired.Load(), Evicted: d.sweeper.evicted.Load()}
	switch {
	case d.expr.Kind == expr.Text: // its records are not counted
	case d.file != nil:
		m.Records = d.file.Estimate()
	default:
		if n, err := d.store.Count(); err == nil {
			m.Records = n
		}
	}
	if d.file != nil {
		m.File = d.file.Stats()
	}
	return m
}

// OpenLog is one of the update logs of a catalog.
type OpenLog struct {
	*ulog.Log
	Private bool // it belongs to one database file
}

// Logs returns all update logs that are open.
func (c *Catalog) Logs() []OpenLog {
	all := make([]OpenLog, 0, len(c.logs))
	for _, l := range c.logs {
		all = append(all, OpenLog{l.Log, l.private})
	}
	return all
}

// All returns all databases, the one of the services last if there is one.
func (c *Catalog) All() []*DB { return c.all }
