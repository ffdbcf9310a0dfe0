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
// # Files
//
// The files stand above each other, and no two of them need each other; internal/lint checks it.
//
//	open, decide, recover, passed_over, remember, restore, start    a start: see start.go
//	catalog, room                                                   what one server has open
//	record, bulk, visit, cursor, claim, transaction, walk, instant  the operations
//	ahead, commit, owe, collector, sweep, convergence, batch        the way of a commit
//	shared, shared_…                                                the way to an engine that servers share
//	core                                                            the state of a database
//	form, stripes, pacing, txview, watch, logdir, copies            what the state consists of
//
// To follow one update, read storeOne in record.go, then modify, lockKey, commit and appendAndApply
// in commit.go. What needs no more than a few methods of a database stands outside: searches of
// keys (db/keymatch), pages (db/pages), checksums (db/checksum).
//
// # Locks
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
//   - No reply, and no SIGNAL of a procedure, tells what the log does not have yet. The stamp of a
//     commit is noted before its updates are visible, and a reader looks at it after reading
//     (owe.go).
//   - Once a server refuses updates of clients, none is appended, whatever it has waited for:
//     appendAndApply looks at the guard under commitMu, and SetGuarded passes that lock.
//   - No update is stored with a right that was taken away while it waited (owed.Rights, asked when
//     the keys are locked).
//   - Results are logged, never operations: a batch holds final values with absolute expiration
//     times.
//   - Removals of expired and evicted records are applied and not logged; the stamp 0 says so. A
//     crash may bring such a record back, and it is found and removed again.
//   - Nothing of a transaction is in the log before its commit.
//   - No cursor holds a transaction of the store: a cursor is a remembered key.
//   - No update waits for somebody's scan: stores are asked for a bounded number of records.
//   - No client removes expired records of a file: the collector does, which may wait
//     (collector.go). Nobody waits for the visitor of a script with the locks of other keys in hand
//     (stripes.lock).
//   - Work for a client ends with the client or with its time (owed.Heed).
//   - No start passes over acknowledged updates silently. A start that is refused changes no byte,
//     but for damage that is found when an older segment is replayed (decide.go).
//   - The log remembers how far a master was followed. Before a log goes on with a file that lacks
//     updates up to there, such as an older copy, it notes durably that no position is known.
//     Otherwise a crash would give that file a position that is too new (opening.disown).
//   - With lww=true all servers end with the same record of a key: that of the newest version.
//     Only a removal that was forgotten may lose against an older update, and then it loses on
//     every server (convergence.go).
//   - A message taken from a queue stays in log and store until it is deleted: taking it only hides
//     it, in memory. To give it back writes nothing, so that works on a full disk too (claims).
//     In an engine it leaves the database, and the engine knows whose it is (shared_term.go).
//   - Protocols get a View, which cannot return the services' database.
package db

import (
	"log/slog"
	"time"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/filestore"
	"gotycoon/db/owed"
	"gotycoon/db/plugged"
	"gotycoon/internal/vfs"
)

// Pending is what an operation owes its client. Its home is package owed.
type Pending = owed.Pending

// Heed is asked whether a long operation is to go on. Its home is package owed.
type Heed = owed.Heed

// Copies says how Synchronize makes a file of a database in an engine, for its command. Without it
// there is none.
type Copies struct {
	Dir string // made when it is needed; no other server uses it
	// rebuild.Write, for which this package stands too far below
	Write func(path string, m filestore.Meta, records func(put func(key, value []byte) error) error) error
}

// Options of a Catalog.
type Options struct {
	// directory of the shared update log (-ulog); empty: file databases have private logs
	LogDir       string
	LogLimit     int64         // size limit of a log segment (-ulim); 0 means 256 MiB, below 0 none
	SID          uint16        // server ID in the log (-sid)
	SyncInterval time.Duration // the log is synced at least this often (-uasi); 0 means 1 s
	SyncEach     bool          // acknowledge after the sync (-oas)

	ReadOnly bool // refuse updates (-ord); files must exist
	TryLock  bool // do not wait for another process (-otl)
	NoRepair bool // refuse a log that ends in an incomplete group (-onr)
	// open files though acknowledged updates stay out that only their own logs have, see PassedOver
	// (-as-is)
	AsIs bool

	Engine *plugged.Engine // of all databases (-pldb); nil: each has the kind that its expression names

	// Shared keeps the records of all databases of the command line, for several servers, in groups
	// that Gather describes; the caller closes it after the catalog. nil: this server alone keeps
	// them
	Shared engine.Engine
	Gather gather.Options
	Copies Copies // of databases in Shared

	Offline *Offline // the caller is a tool, not a server; nil: a server

	// expression of a database file for records of the server's own, see Catalog.Services; empty:
	// none
	Services string
	// its records that others rely on, few and small: they are stored as long as there is any room;
	// nil: all are
	Vital func(key []byte) bool

	ahead int // size of values that go ahead, for tests; 0 means what the log takes

	// overlay bytes of a file database that start a checkpoint; 0 means filestore.DefaultLimit
	CheckpointSize int64

	// removals that a file with lww=true remembers; 0 means filestore.DefaultRemovals
	Removals int64

	Opening func(what, path string) // told "log" or "database" before each is opened; may be nil

	// Background is told 1 when a checkpoint begins to work, and -1 when it ends; nil: nobody wants
	// to know. Any goroutine may call it, with locks of the store held.
	Background func(change int)

	Logger *slog.Logger     // nil means silent
	Now    func() time.Time // nil means time.Now
	FS     vfs.FS           // where logs are; nil means vfs.OS
}

func (o *Options) setDefaults() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.FS == nil {
		o.FS = vfs.OS{}
	}
	if o.SyncInterval <= 0 {
		o.SyncInterval = time.Second
	}
	o.Gather.SID = o.SID
	if o.Opening == nil {
		o.Opening = func(string, string) {}
	}
}

// Offline tells Open that the caller is a tool that works on files while no server has them open.
//
// The last server may have crashed, and then the newest updates of a file are only in that server's
// log. So a file is first brought up to date from the log that the file names: its private log, or
// a shared log, which is only read. Where that log cannot be found, a database opened with ReadOnly
// shows what is in the file, with a warning; otherwise Open refuses. After that the file belongs to
// the tool's own log, is closed cleanly, and a server adopts it as it is.
type Offline struct {
	DBID  uint16   // index of the first database in the log of Options.LogDir (-dbid)
	Logs  []string // directories where a file's own log may be too, when it was moved
	AsIs  bool     // leave files as they are: the caller brings in the updates itself
	Force bool     // open a file as it is when its log cannot be found (-onr)
}
