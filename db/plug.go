package db

import (
	"strings"

	"gotycoon/db/expr"
	"gotycoon/db/mapstore"
	"gotycoon/db/store"
	"gotycoon/db/voidstore"
)

// Engine keeps records in another way than the databases of this package. A server that is given one (-pldb) opens all its
// databases with it. Expiration, capacity limits, locking, the update log and replication come from this package, whatever the
// engine. docs/engines.md tells how to add one.
type Engine struct {
	File string // its name: the last component of the path that -pldb is given

	// Open opens one database. name is the expression of the command line, untouched. Keys come in byte order.
	Open func(name string, o EngineOptions) (store.Store, error)

	Void bool // nothing is ever stored, so that updates are taken also with -ord
}

// EngineOptions is what an engine is told about the database that it opens.
type EngineOptions struct {
	ReadOnly bool // there will be no updates
}

// engines is the table of all engines.
func engines() []Engine {
	return []Engine{
		{File: "ktplugdbmap.so", Open: func(string, EngineOptions) (store.Store, error) { return mapstore.New(), nil }},
		{File: "ktplugdbvoid.so", Open: func(string, EngineOptions) (store.Store, error) { return voidstore.Store{}, nil }, Void: true},
	}
}

// FindEngine returns the engine that a path names, wherever the path points: engines are part of the program, not files.
func FindEngine(path string) (Engine, bool) {
	name := path[strings.LastIndexByte(path, '/')+1:]
	for _, e := range engines() {
		if e.File == name {
			return e, true
		}
	}
	return Engine{}, false
}

// parse parses the expression of a database.
func (c *Catalog) parse(raw string, index uint16) (expr.Expr, error) {
	if c.opts.Engine != nil && index != ServicesIndex {
		return expr.ParsePlugged(raw), nil
	}
	return expr.Parse(raw)
}

// openPlugged opens the store of a plugged database.
func (c *Catalog) openPlugged(d *DB) error {
	s, err := c.opts.Engine.Open(d.expr.Raw, EngineOptions{ReadOnly: d.readOnly})
	if err != nil {
		return openError(err)
	}
	d.store = s
	if c.opts.Engine.Void {
		d.readOnly = false
	}
	return nil
}
