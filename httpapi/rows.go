package httpapi

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
	asBytes  kind = iota + 1
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

// commonRows are the rows of input that every procedure takes.
var commonRows = []row{
	{"DB", asText, "the database, by number or name (default 0)"},
	{"CUR", asInt, "the cursor, a number of the client's choice; cursors belong to the connection"},
	{"WAIT", asText, "wait for the signal of this name before anything else"},
	{"WAITTIME", asNumber, "for so many seconds at most (default 30)"},
	{"SIGNAL", asText, "send the signal of this name afterwards; SIGNALED says how many were waiting at this server"},
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
