// Package db is the timed database: records that can expire, in memory or in a file, with the
// operations that all protocols share, cursors, and the catalog of the databases that one server
// has open.
//
// There is one way in for updates:
//
//	Set, Increment, SetBulk, Cursor.SetValue, …    what the client asked for
//	(*core).modify                                 key stripe locked, old value read, result put into a batch
//	(*core).commit                                 commit lock { ulog.Append ; store.Apply }
//	(*Pending).Wait                                the update is as safe as the mode promises
//
// The package has two layers, with a wall between them that the compiler guards. DB has what
// clients ask for. The unexported type core, which DB embeds, has the state and the way of a
// commit, and no method of core calls an operation: see the essay in core.go.
//
// Lock order: sweep → key stripes, in ascending order → commit lock → locks of ulog and store. Only
// memory is touched under the commit lock; old values, which may be on disk, are read under the
// key's stripe.
package db

import "gotycoon/db/owed"

// Pending is what an operation owes its client. Its home is package owed.
type Pending = owed.Pending

// Heed is asked whether a long operation is to go on. Its home is package owed.
type Heed = owed.Heed

// DB is one database. It may be used by many goroutines.
//
// Its own methods are the operations. What it knows about itself (path, kind, order of keys) and
// its log come from core.
type DB struct{ core }
