package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"gotycoon/access"
	"gotycoon/client/wire/tsv"
	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/httpapi/message"
	"gotycoon/internal/lenient"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
)

// procedure is all that there is to say about a remote procedure. Who may call it, what the
// counters of report and of the metrics make of a call, the answers of /rpc/help and
// docs/procedures.md come from these rows and from nowhere else.
type procedure struct {
	name   string
	run    func(*call) error
	need   right
	local  bool // it is about this server's own files, and is never forwarded
	uses   uses
	tally  tally
	expect dberr.Code // the error that is a normal outcome and answered with 450; dberr.Success: none is
	gone   string     // what is no longer there when it answers 410
	off    string     // what the server lacks when it answers 501; empty: it has what it takes
	help   string
	in     []row
	out    []row
	place  int // in the table; NewHandler fills it in
}

// right is what a client must be allowed to do to call a procedure. A procedure that both tells and
// changes something needs both rights, so that access.Read alone means: nothing is changed.
type right struct {
	rights access.Rights
	about  about
}

// about is what the rights are asked for.
type about byte

const (
	aboutNothing  about = iota // anybody who may do anything
	aboutKey                   // the parameter key
	aboutKeys                  // the keys of a bulk procedure
	aboutPrefix                // the parameter prefix
	aboutPart                  // the keys with the parameter prefix; without it the whole database
	aboutDatabase              // the whole database
	aboutFile                  // the same; with a command the whole server, and Admin
	aboutCursor                // the whole database of the cursor
	aboutServer                // all databases, and what belongs to none
)

// uses says which of the common parameters a procedure needs.
type uses byte

const (
	usesNothing uses = iota
	usesDB
	usesCursor
)

// tally says which counters of report a call adds to.
type tally byte

const (
	tallyNone tally = iota
	tallySet
	tallyRemove
	tallyGet
	tallySeize // a get and a remove
	tallyMisc
)

// table has the procedures that a Handler serves. NewHandler hands it down to every call, because a
// procedure of the table (help) reads the table.
type table struct {
	rows   []procedure
	byName map[string]*procedure
}

// rpcPrefix is in front of a procedure's name in the path.
const rpcPrefix = "/rpc/"

// call is what a procedure is given, and room for its answer. A connection has one call for one
// request after the other: recycle clears what belongs to a request. Verbs use its request,
// database and buffers too.
type call struct {
	conn    *netio.Conn
	opts    *Options
	table   *table
	heed    db.Heed           // work that takes long calls it, and ends with its error
	req     message.Request   // the request as it came
	in      input             // of a procedure
	out     output            // of a procedure
	bulk    bulk              // room for a bulk procedure
	cursors map[int64]*cursor // by the client's number; nil until the first one

	document document  // what is answered in place of the output; the zero value: nothing
	watch    *watching // the stream that the call has begun; nil: the reply is output

	db     *db.DB  // nil: there is no such database
	cur    *cursor // nil: there is no such cursor
	curID  int64
	curNew bool // the cursor was made for this call
	mute   bool // the call sends no signal, whatever it asks for
	unseen bool // the call is not shown to those who watch: it is their own

	monitor *monitor // of the connection; nil: none
}

// document is a reply that is no table.
type document struct{ kind, text string }

// bulk is room for the records of a bulk procedure.
type bulk struct {
	keys    [][]byte
	records []db.Record
}

// cursor is a cursor of the client, which remembers its database. It lives until the client ends
// it, or the connection.
type cursor struct {
	db   *db.DB
	pos  *db.Cursor
	cost int // bytes that count in the connection's account
}

// monitor is the stream of requests of a connection. It lives from one call to the next, so that no
// request between two calls is missing.
type monitor struct {
	*metrics.Monitor
	filter metrics.Filter
	idle   *time.Timer // closes the stream
}

// recycle prepares the buffers for the next request and lets go of large ones.
func (c *call) recycle() {
	if c.watch != nil {
		c.watch.end()
		c.watch = nil
	}
	if c.document.text != "" {
		c.document = document{}
	}
	c.req.Recycle()
	c.in.Reset(keepRows)
	c.out.lack = nil
	c.out.rows.Reset(keepRows)
	c.out.arena = shrink(c.out.arena)
	c.out.value = shrink(c.out.value)
	c.out.json = shrink(c.out.json)
	if cap(c.bulk.keys) > keepRows || cap(c.bulk.records) > keepRows {
		c.bulk = bulk{}
	}
	c.db, c.cur, c.curID, c.curNew, c.mute, c.unseen = nil, nil, 0, false, false, false
}

func shrink(b []byte) []byte {
	if cap(b) > keepScratch {
		return nil
	}
	return b[:0]
}

// database finds a database as clients name it: by its number if the text begins with a digit, else
// by its name. An empty text is number 0. It returns nil if there is no such database.
func (c *call) database(expr []byte) *db.DB {
	switch {
	case c.opts.NoData != "":
		return nil
	case len(expr) == 0:
		return c.opts.Catalog.DB(0)
	}
	if n, ok := lenient.Natural(expr); ok {
		return c.opts.Catalog.DB(int(uint32(n)))
	}
	return c.opts.Catalog.Lookup(string(untilNUL(expr)))
}

// count adds a call to the counters of report. A call that was wrong as such is not counted.
func (c *call) count(t tally, err error) {
	if t == tallyNone || err != nil && isBadRequest(err) {
		return
	}
	n := c.opts.Counts
	switch t {
	case tallySet:
		addCall(&n.Set, &n.SetMisses, err)
	case tallyRemove:
		addCall(&n.Remove, &n.RemoveMisses, err)
	case tallyGet:
		addCall(&n.Get, &n.GetMisses, err)
	case tallySeize:
		addCall(&n.Get, &n.GetMisses, err)
		addCall(&n.Remove, &n.RemoveMisses, err)
	case tallyMisc:
		n.Misc.Add(1)
	}
}

func addCall(calls, misses *atomic.Int64, err error) {
	calls.Add(1)
	if err != nil {
		misses.Add(1)
	}
}

// lack returns why there is no memory for what the request needs, nil where there is.
func (c *call) lack() error {
	if c.out.lack != nil {
		return c.out.lack
	}
	if err := c.in.Err(); err != nil {
		return err
	}
	return c.out.rows.Err()
}

// beginLong sends the replies to earlier requests, so that their clients need not wait for work
// that may take long.
func (c *call) beginLong() error {
	if len(c.conn.Out) == 0 {
		return nil
	}
	if c.conn.Flush() != nil {
		return errBroken
	}
	c.conn.Meter.Restart()
	return nil
}

// beginWait is beginLong for a call that may wait for a minute or for ever. The request is in
// memory as long, and such a call needs no large one.
func (c *call) beginWait() error {
	if c.conn.Large() {
		return errLargeWait
	}
	return c.beginLong()
}

// errBroken means that the connection has broken; nobody is there to be answered.
var errBroken = errors.New("the connection is broken")

// Errors of a call that was wrong as such. Their texts are those of the original.
var (
	errInvalidParameters = errors.New("invalid parameters")
	errNoDatabase        = errors.New("no such database")
	errNoCursor          = errors.New("no such cursor")
	errNoLog             = errors.New("no update log allows no replication")
	errLargeWait         = fmt.Errorf("%w: the request has more than 64 KiB, which would stay in memory while this call waits: "+
		"send what the call needs and nothing else, on a connection of its own", errInvalidParameters)
)

// isBadRequest reports whether the call as such was wrong. Such calls are not counted.
func isBadRequest(err error) bool {
	if _, ok := errors.AsType[*dberr.Error](err); ok { // the usual case
		return false
	}
	return errors.Is(err, errInvalidParameters) || errors.Is(err, errNoDatabase) ||
		errors.Is(err, errNoCursor) || errors.Is(err, errNoLog)
}

// input is the rows of a procedure's input: its parameters, and the records of a bulk procedure.
type input struct{ tsv.Rows }

// need returns a parameter that the procedure cannot do without.
func (in *input) need(name string) ([]byte, error) {
	value, ok := in.Get(name)
	if !ok {
		return nil, errInvalidParameters
	}
	return value, nil
}

// keyAnd returns the key and another parameter, for procedures that cannot do without either.
func (in *input) keyAnd(name string) (key, value []byte, err error) {
	key, ok := in.Get("key")
	value, alsoOK := in.Get(name)
	if !ok || !alsoOK {
		return nil, nil, errInvalidParameters
	}
	return key, value, nil
}

// orNil returns a parameter, nil if it is absent. An empty parameter is not nil.
func (in *input) orNil(name string) []byte {
	value, ok := in.Get(name)
	if ok && value == nil {
		return []byte{}
	}
	return value
}

// intOr returns an integer parameter, or the default where it is absent.
func (in *input) intOr(name string, absent int64) int64 {
	text, ok := in.Get(name)
	if !ok {
		return absent
	}
	return lenient.Int(text)
}

// xt returns the expiration time.
func (in *input) xt() record.XT {
	text, ok := in.Get("xt")
	if !ok {
		return record.Never
	}
	return record.XT(lenient.Int(text))
}

// records calls visit with name and value of each row whose name begins with an underscore, in the
// order of the names, until visit returns false.
func (in *input) records(visit func(name, value []byte) bool) {
	in.Sort()
	for row := range in.All() {
		if len(row.Name) > 0 && row.Name[0] == '_' && !visit(row.Name, row.Value) {
			return
		}
	}
}

// keys yields the keys of a bulk procedure.
func (in *input) keys(yield func(key []byte) bool) {
	in.records(func(name, _ []byte) bool { return yield(name[1:]) })
}

// untilNUL returns text up to its first NUL.
func untilNUL(text []byte) []byte {
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return text[:i]
	}
	return text
}
