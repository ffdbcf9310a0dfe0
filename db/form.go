package db

import (
	"fmt"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/expr"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

// form is what the expression of a database determines: names, the length of keys, and how a value
// is stored. A stored value has the absolute expiration time in front, unless the database is
// persistent.
type form struct {
	expr   expr.Expr
	index  uint16
	maxKey int // longest key in bytes
	now    func() time.Time
}

// Path returns the expression without its parameters.
func (d *form) Path() string { return d.expr.Path }

// Expr returns the expression as given on the command line.
func (d *form) Expr() string { return d.expr.Raw }

// Name returns the name under which clients find the database.
func (d *form) Name() string { return d.expr.Name }

// Kind returns the type of the database.
func (d *form) Kind() expr.Kind { return d.expr.Kind }

// Index returns the number of the database on the command line, which is also its number in the
// update log.
func (d *form) Index() int { return int(d.index) }

// MaxKey returns the length of the longest key that the database can have a record of, in bytes.
func (d *form) MaxKey() int { return d.maxKey }

// checkKey returns why the database can have no record of key.
func (d *form) checkKey(key []byte) error {
	if len(key) > d.maxKey {
		return &dberr.Error{Code: dberr.InvalidOperation, Message: fmt.Sprintf("the key is longer than %d bytes", d.maxKey)}
	}
	return nil
}

// Persistent reports whether records have no expiration time (ktopts=p).
func (d *form) Persistent() bool { return d.expr.Params.Persistent }

// prefixSize is the length of what is stored in front of a value.
func (d *form) prefixSize() int {
	if d.Persistent() {
		return 0
	}
	return record.XTSize
}

// split takes a stored value apart. A value too short for an expiration time counts as absent.
func (d *form) split(stored []byte) (xt int64, value []byte, ok bool) {
	if d.Persistent() {
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
	if d.Persistent() {
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
	if d.Persistent() {
		return record.MaxXT
	}
	return record.Absolute(xt, d.seconds())
}

// ExpiredAt reports whether a record with this absolute expiration time has expired by now.
func (d *form) ExpiredAt(xt int64) bool { return !d.Persistent() && record.Expired(xt, d.seconds()) }
