package httpapi

import (
	"errors"
	"math"
	"strconv"

	"gotycoon/client/wire/tsv"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/internal/netio"
)

const (
	keepScratch = 64 << 10 // larger scratch buffers are not kept for the next request
	keepRows    = 1 << 8   // nor are longer tables
)

// output is the rows of a procedure's output. Their texts are slices of the arena, or of buffers
// that stay as they are until the reply is written. When the arena is full another arena takes its
// place, and earlier rows keep the old one.
type output struct {
	rows  tsv.Rows
	lack  error // there is no memory for the output: the request is refused in the end
	c     *netio.Conn
	arena []byte
	value []byte // room for the value of a record
	json  []byte // room for a short reply in JSON
	code  int    // of the database's error, in a call that has failed
}

const (
	fewBytes  = 256
	mostBytes = 64 << 10 // of an arena, unless one text is longer
)

// hold takes memory for what a procedure finds.
func (o *output) hold(bytes int) error {
	o.lack = o.c.Hold(bytes)
	return o.lack
}

// reserve makes room for n bytes in the arena, and reports whether there is memory for them.
func (o *output) reserve(n int) bool {
	if n <= cap(o.arena)-len(o.arena) {
		return true
	}
	room := max(n, fewBytes, min(2*cap(o.arena), mostBytes))
	if o.lack == nil {
		o.lack = o.c.Hold(room)
	}
	if o.lack != nil {
		return false
	}
	o.arena = make([]byte, 0, room)
	return true
}

// since returns what has been appended to the arena behind from.
func (o *output) since(from int) []byte { return o.arena[from:len(o.arena):len(o.arena)] }

// intern copies text into the arena.
func (o *output) intern(text string) []byte {
	if !o.reserve(len(text)) {
		return nil
	}
	from := len(o.arena)
	o.arena = append(o.arena, text...)
	return o.since(from)
}

// internBytes copies text, with a prefix, into the arena.
func (o *output) internBytes(prefix string, text []byte) []byte {
	if !o.reserve(len(prefix) + len(text)) {
		return nil
	}
	from := len(o.arena)
	o.arena = append(append(o.arena, prefix...), text...)
	return o.since(from)
}

func (o *output) internInt(n int64) []byte {
	const longest = 20
	if !o.reserve(longest) {
		return nil
	}
	from := len(o.arena)
	o.arena = strconv.AppendInt(o.arena, n, 10)
	return o.since(from)
}

// add adds a row. value must stay as it is until the reply is written.
func (o *output) add(name string, value []byte) { o.rows.Add(o.intern(name), value) }

// addText adds a row with a text.
func (o *output) addText(name, value string) { o.rows.Add(o.intern(name), o.intern(value)) }

// addInt adds a row with an integer.
func (o *output) addInt(name string, n int64) { o.rows.Add(o.intern(name), o.internInt(n)) }

// addFloat adds a row with a number of six decimals.
func (o *output) addFloat(name string, f float64) {
	switch {
	case math.IsInf(f, 1):
		o.addText(name, "inf")
	case math.IsInf(f, -1):
		o.addText(name, "-inf")
	default:
		from := len(o.arena)
		o.arena = strconv.AppendFloat(o.arena, f, 'f', 6, 64)
		o.add(name, o.since(from))
	}
}

// addXT adds the expiration time, if the record has one.
func (o *output) addXT(xt int64) {
	if xt < record.MaxXT {
		o.addInt("xt", xt)
	}
}

// addMap adds the rows of a map, in the order of their names.
func (o *output) addMap(rows map[string]string) {
	for name, value := range rows {
		o.addText(name, value)
	}
	o.rows.Sort()
}

// keep makes the buffer of a value the room for later values, if the buffer is larger than the
// present room.
func (o *output) keep(value []byte) {
	if cap(value) > cap(o.value) {
		o.value = value[:0]
	}
}

// fail makes the output the one row of a failed call.
func (o *output) fail(err error) {
	o.rows.Reset(keepRows)
	o.code = 0
	if e, ok := errors.AsType[*dberr.Error](err); ok {
		o.code = int(e.Code)
	}
	o.add("ERROR", o.errorText(err))
}

// errorText returns what the client reads about an error. The cause of a database error is for the
// log only.
func (o *output) errorText(err error) []byte {
	e, ok := errors.AsType[*dberr.Error](err)
	if !ok {
		return o.intern(err.Error())
	}
	from := len(o.arena)
	o.arena = append(o.arena, "DB: "...)
	o.arena = strconv.AppendInt(o.arena, int64(e.Code), 10)
	for _, part := range [...]string{e.Code.String(), e.Message} { // e.Error() would allocate
		o.arena = append(append(o.arena, ": "...), part...)
	}
	return o.since(from)
}
