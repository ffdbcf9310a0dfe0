package httpapi

import (
	"gotycoon/access"
	"gotycoon/db/dberr"
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

// row is a row of a procedure's input or output. A name in capital letters stands for other names,
// a name with an underscore in front for those of records.
type row struct {
	name string
	kind kind
	help string
}

// kind says what a row holds. For procedures and TSV it is all bytes: the kinds are for JSON, and
// for people.
type kind byte

const (
	asBytes  kind = iota
	asText        // words
	asFlag        // present or not
	asInt         // an integer
	asNumber      // a number, perhaps with a fraction
	asStamp       // a time stamp: digits, as text, for they are too many for numbers of JavaScript
	asKeys        // of records: keys alone; in an output their values are their places, from 0 on

	must kind = 1 << 7 // without the row the procedure answers 400; always there in an output
)

// of returns the kind without must.
func (k kind) of() kind { return k &^ must }

// rowOf returns the row with a name.
func rowOf(rows []row, name []byte) (row, bool) {
	for _, r := range rows {
		if r.name == string(name) {
			return r, true
		}
	}
	return row{}, false
}

// records returns the row that stands for records.
func records(rows []row) (row, bool) {
	for _, r := range rows {
		if r.name[0] == '_' {
			return r, true
		}
	}
	return row{}, false
}

// table has the procedures that a Handler serves. NewHandler hands it down to every call, because a
// procedure of the table (help) reads the table.
type table struct {
	rows   []procedure
	byName map[string]*procedure
}

// commonRows are the rows of input that every procedure takes.
var commonRows = []row{
	{"DB", asText, "the database, by number or name (default 0)"},
	{"CUR", asInt, "the cursor, a number of the client's choice; cursors belong to the connection"},
	{"WAIT", asText, "wait for the signal of this name before anything else"},
	{"WAITTIME", asNumber, "for so many seconds at most (default 30)"},
	{"SIGNAL", asText, "send the signal of this name afterwards; SIGNALED says how many were waiting"},
	{"SIGNALBROAD", asFlag, "if present: to all who wait, not only to the one who waits the longest"},
	{"REPLICAS", asInt, "answer when so many followers have what the answer tells"},
	{"POSITION", asText, "?: give the position of the newest update with the answer, in a row of this name; " +
		"or a position, perhaps with seconds behind it: wait until it is here, 5 seconds by default, else status 503"},
}

// commonOut are the rows of output that every procedure may have.
var commonOut = []row{
	{"SIGNALED", asInt, "with SIGNAL: how many were waiting for it"},
	{"POSITION", asStamp, "with POSITION=?: the position of the newest update"},
}
