package db

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/expr"
	"gotycoon/db/owed"
	"gotycoon/db/record"
	"gotycoon/db/replay"
	"gotycoon/db/store"
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
	Shared     bool // an engine keeps the records for several servers

	Order   expr.Order // in which a Frozen's records come
	Ordered bool       // false: they come in none
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

// Replicas returns how many followers must have an update before it is answered (#syncrep=), below
// 0 for the server's number.
func (d *form) Replicas() int { return int(d.expr.Params.SyncRep) }

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

// Split takes a stored value apart. A value too short for an expiration time counts as absent.
func (d *form) Split(stored []byte) (xt int64, value []byte, ok bool) {
	if d.persistent() {
		return record.MaxXT, stored, true
	}
	return record.Split(stored)
}

// SplitStored takes a stored value of this database apart. live is false for a record that has
// expired, and for a value too short for an expiration time where it must have one.
func (d *form) SplitStored(stored []byte) (xt int64, value []byte, live bool) {
	xt, value, ok := d.Split(stored)
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
	if d.persistent() || xt == record.Never {
		return record.MaxXT
	}
	return record.Absolute(xt, d.seconds())
}

// lines is the end of a text database, where the next record goes. In a text database every record
// is a line, and its key is the byte offset of the line as 16 hexadecimal digits. The zero value is
// for a database of another kind.
type lines struct {
	text   bool
	prefix int   // length of what is stored in front of a value
	end    int64 // offset of the next line; guarded by the one stripe
}

// newLines returns the lines of an empty database.
func newLines(f *form) lines { return lines{text: f.expr.Kind == expr.Text, prefix: f.prefixSize()} }

// target returns the key under which a new record is stored. That is the record's own key, except
// in a text database.
func (l *lines) target(key, value []byte) []byte {
	if !l.text {
		return key
	}
	at := l.end
	l.end += int64(l.prefix+len(value)) + 1
	return fmt.Appendf(nil, "%016X", at)
}

// findEnd sets the end behind the last line of a store.
func (l *lines) findEnd(s store.Store) error {
	if !l.text {
		return nil
	}
	return s.Scan(store.Start{Edge: true, Backward: true}, func(key, stored []byte) bool {
		at, err := strconv.ParseInt(string(key), 16, 64)
		if err == nil {
			l.end = at + int64(len(stored)) + 1
		}
		return err != nil
	})
}

// glance reads only the beginning of a large value, and the value's size. That is enough to know
// whether there is a record.
type glance struct{ size int }

// glanced is how many bytes of a large value are copied at a glance: the expiration time, and marks
// in front of it.
const glanced = 64

// Large implements store.Reader.
func (g *glance) Large(size int) (wanted int, err error) {
	g.size = size
	return glanced, nil
}

// systemError gives an error from below the code that clients see. An error that has a code keeps
// it, and an error of a Heed or a Purse is returned as the Heed or the Purse gave it.
func systemError(err error) error {
	if reason := owed.Reason(err); reason != nil {
		return reason
	}
	if _, known := errors.AsType[*dberr.Error](err); known || err == nil {
		return err
	}
	return &dberr.Error{Code: dberr.SystemError, Message: err.Error(), Err: err}
}
