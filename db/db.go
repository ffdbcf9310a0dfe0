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
//
// # Rules
//
//   - Log and store change in one step and in one order: appendAndApply, under commitMu. Apply
//     cannot fail.
//   - Old values are read outside that lock, under the key's stripe.
//   - No reply and no signal tells what is not safe. The stamp of a commit is noted before its
//     updates are visible, and a reader looks at it after reading (owe.go).
//   - Once a server refuses updates of clients, none is appended, whatever it has waited for:
//     appendAndApply looks at the guard under commitMu, and SetGuarded passes that lock.
//   - No update is stored with a right that was taken away while it waited (owed.Rights, asked when
//     the keys are locked).
//   - Results are logged, never operations: a batch holds final values with absolute expiration
//     times.
//   - Expired and evicted records are not logged: they leave the store with stamp 0.
//   - Nothing of a transaction is in the log before its commit.
//   - No cursor holds a transaction of the store: a cursor is a remembered key.
//   - No update waits for somebody's scan: stores are asked for a bounded number of records.
//   - Work for a client ends with the client or with its time (owed.Heed).
//   - No start passes over acknowledged updates silently, and a start that is refused changes no
//     byte.
//   - A file that lacks what its log remembers keeps its own position: the log forgets before the
//     file is adopted.
//   - Of concurrent updates of a key the newest version wins (lww=true), on every server, also
//     after removals were forgotten and after full copies (convergence.go).
//   - A message taken from a queue stays in log and store until it is deleted; a message that comes
//     back is visible again, also where nothing can be stored (claims).
//   - Protocols get a View, which cannot return the services' database.
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
