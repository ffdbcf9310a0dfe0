// Package db is the timed database: records that can expire, in memory or in a file, with the operations that all
// protocols share, cursors, and the catalog of the databases that one server has open.
//
// There is one way in for updates:
//
//	Set, Increment, SetBulk, Cursor.SetValue, …    what the client asked for
//	(*DB).modify                                   key stripe locked, old value read, result put into a batch
//	(*DB).commit                                   commit lock { ulog.Append ; store.Apply }
//	(*Pending).Wait                                the update is as safe as the mode promises
//
// Lock order: sweep → key stripes, in ascending order → commit lock → locks of ulog and store. Only memory is
// touched under the commit lock; old values, which may be on disk, are read under the key's stripe.
package db

import "gotycoon/db/owed"

// Pending is what an operation owes its client. Its home is package owed.
type Pending = owed.Pending

// Heed is asked whether a long operation is to go on. Its home is package owed.
type Heed = owed.Heed
