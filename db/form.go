package db

import (
	"fmt"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/expr"
	"gotycoon/db/record"
	"gotycoon/db/replay"
	"gotycoon/ulog"
)

// Info is what a database is, by its expression and since it was opened. None of it changes.
type Info struct {
	Expr string // expression as given on the command line
	Path string // expression without its parameters
	Kind expr.Kind

	MaxKey     int  // length of the longest key that there can be a record of, in bytes
	Persistent bool // records have no expiration time (ktopts=p)
	OnDisk     bool // the records are in a file
	Volatile   bool // the records are in memory only, and not in an engine of -pldb
	ReadOnly   bool // all updates are refused

	Order   expr.Order // in which a Frozen's records come
	Ordered bool       // false: they come in none
	// keys that begin alike stand together
	Bytewise bool
	// A copy of another database, in the byte order of its keys, can be merged into this one record
	// by record, so that records which both have are never missing. A database that is not
	// mergeable is cleared first.
	Mergeable bool
	// updates of other servers are compared with what the database has
	KeepsVersions bool

	Remembers bool // there is a place for the position of a follower
	// the position that the database had when it was opened: the one given with the last of its
	// updates, or a later one; nil: none
	Remembered []byte

	PassedOver *replay.PassedOver // what the database was opened without; nil: nothing
}

// describe returns the Info of a database that has been brought up to date.
func (d *core) describe() *Info {
	e, order := &d.expr, d.expr.Params.RComp
	ordered := d.file != nil || e.Kind.Ordered()
	return &Info{
		Expr: e.Raw, Path: e.Path, Kind: e.Kind,
		MaxKey: d.maxKey, Persistent: d.persistent(), ReadOnly: d.readOnly,
		OnDisk: d.file != nil, Volatile: d.file == nil && e.Kind != expr.Plugged,
		Order: order, Ordered: ordered, Bytewise: d.bytewise(),
		Mergeable:     ordered && order == expr.Lexical && e.Kind != expr.Text,
		KeepsVersions: d.versions.lww(),
		Remembers:     !d.readOnly && (d.file != nil || d.log != nil),
		Remembered:    d.remembered, PassedOver: d.recovery.passed,
	}
}

// Info returns what the database is. The caller must not change it.
func (d *core) Info() *Info { return d.info }

// form is what the expression of a database determines: names, the length of keys, and how a value
// is stored. A stored value has the absolute expiration time in front, unless the database is
// persistent.
type form struct {
	expr   expr.Expr
	index  uint16
	maxKey int // longest key in bytes
	now    func() time.Time
}

// Name returns the name under which clients find the database.
func (d *form) Name() string { return d.expr.Name }

// Index returns the number of the database on the command line, which is also its number in the
// update log.
func (d *form) Index() int { return int(d.index) }

// path returns the expression without its parameters.
func (d *form) path() string { return d.expr.Path }

// checkKey returns why the database can have no record of key.
func (d *form) checkKey(key []byte) error {
	if len(key) > d.maxKey {
		return &dberr.Error{Code: dberr.InvalidOperation, Message: fmt.Sprintf("the key is longer than %d bytes", d.maxKey)}
	}
	return nil
}

// persistent reports whether records have no expiration time (ktopts=p).
func (d *form) persistent() bool { return d.expr.Params.Persistent }

// prefixSize is the length of what is stored in front of a value.
func (d *form) prefixSize() int {
	if d.persistent() {
		return 0
	}
	return record.XTSize
}

// split takes a stored value apart. A value too short for an expiration time counts as absent.
func (d *form) split(stored []byte) (xt int64, value []byte, ok bool) {
	if d.persistent() {
		return record.MaxXT, stored, true
	}
	return record.Split(stored)
}

// SplitStored takes a stored value of this database apart. live is false for a record that has
// expired, and for a value too short for an expiration time where it must have one.
func (d *form) SplitStored(stored []byte) (xt int64, value []byte, live bool) {
	xt, value, ok := d.split(stored)
	return xt, value, ok && !record.Expired(xt, d.seconds())
}

// inPlace returns the stored form of a value behind Headroom bytes. The expiration time overwrites
// these bytes.
func (d *form) inPlace(room []byte, xt int64) []byte {
	if d.persistent() {
		return room[record.Headroom:]
	}
	record.AppendXT(room[:0], xt)
	return room
}

// storable returns why the database can never hold an update of another server.
func (d *form) storable(u *ulog.Update) error {
	switch {
	case u.Op != ulog.OpSet && u.Op != ulog.OpRemove:
		return &dberr.Error{Code: dberr.InvalidOperation, Message: fmt.Sprintf("unknown operation %#x in an update", byte(u.Op))}
	case len(u.Value) > record.MaxValueSize+record.XTSize:
		return dberr.ErrLongValue
	}
	return d.checkKey(u.Key)
}

// Now is the time by which records expire.
func (d *form) Now() time.Time { return d.now() }

// seconds returns the current time as expiration counts it.
func (d *form) seconds() int64 { return d.now().Unix() }

// absolute turns a client's expiration argument into the time to store.
func (d *form) absolute(xt record.XT) int64 {
	if d.persistent() {
		return record.MaxXT
	}
	return record.Absolute(xt, d.seconds())
}
