// Package plugged is the engines that -pldb names: they keep records in another way than the stores
// of package db.
package plugged

import (
	"strings"

	"gotycoon/db/mapstore"
	"gotycoon/db/store"
	"gotycoon/db/voidstore"
)

// Engine keeps records in another way than the stores of package db. A server that is given one
// (-pldb) opens all its databases with it. Expiration, capacity limits, locking, the update log and
// replication stay the work of package db. docs/engines.md tells how to add an engine.
type Engine struct {
	File string // its name: the last component of the path that -pldb is given

	// Open opens one database. name is the expression of the command line, untouched. Keys come in
	// byte order.
	Open func(name string, o Options) (store.Store, error)

	Void bool // nothing is ever stored, so that updates are taken also with -ord
}

// Options is what an engine is told about the database that it opens.
type Options struct {
	ReadOnly bool // there will be no updates
}

// engines is the table of all engines.
func engines() []Engine {
	return []Engine{
		{File: "ktplugdbmap.so", Open: func(string, Options) (store.Store, error) { return mapstore.New(), nil }},
		{File: "ktplugdbvoid.so", Open: func(string, Options) (store.Store, error) { return voidstore.Store{}, nil }, Void: true},
	}
}

// Find returns the engine that a path names. Engines are part of the program, not files, so only
// the last component of the path counts.
func Find(path string) (Engine, bool) {
	name := path[strings.LastIndexByte(path, '/')+1:]
	for _, e := range engines() {
		if e.File == name {
			return e, true
		}
	}
	return Engine{}, false
}
