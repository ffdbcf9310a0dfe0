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
	run    func(*Session) error
	need   right
	uses   uses
	tally  tally
	expect dberr.Code // the error that is a normal outcome and answered with 450; dberr.Success: none is
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

// row is a row of a procedure's input or output.
type row struct{ name, help string }

// Rights of several procedures.
const (
	read      = access.Read
	write     = access.Write
	readWrite = access.Read | access.Write
)

// Rows of several procedures.
var (
	keyRow    = row{"key", "the key"}
	valueRow  = row{"value", "the value"}
	xtRow     = row{"xt", "seconds until the record expires; below 0: the absolute time, in seconds since 1970 (default never)"}
	expiryRow = row{"xt", "when the record expires, in seconds since 1970; absent for never"}
	atomicRow = row{"atomic", "if present: all records at once, or none"}
	stepRow   = row{"step", "if present: move to the next record afterwards"}
	maxRow    = row{"max", "list at most so many keys; below 0: all (default)"}
	rankRow   = row{"_KEY", "place of a key in the result, from 0 on"}
	foundRow  = row{"num", "how many keys were found"}
	numRow    = row{"num", "the number to add"}
	sumRow    = row{"num", "the sum"}
	origRow   = row{"orig", "what a missing record counts as; try: an error; set: num replaces the number (default 0)"}
)

// procedures lists every remote procedure in the order of the names.
var procedures = [...]procedure{
	{name: "add", run: rpcAdd, need: right{write, aboutKey}, uses: usesDB, tally: tallySet, expect: dberr.RecordDuplication,
		help: "store a record that does not exist",
		in:   []row{keyRow, valueRow, xtRow}},
	{name: "append", run: rpcAppend, need: right{write, aboutKey}, uses: usesDB, tally: tallySet,
		help: "append to the value of a record, which is made if it does not exist",
		in:   []row{keyRow, valueRow, xtRow}},
	{name: "cas", run: rpcCas, need: right{readWrite, aboutKey}, uses: usesDB, tally: tallySet, expect: dberr.LogicInconsistency,
		help: "replace a value if it is the expected one",
		in: []row{keyRow, {"oval", "the expected value; absent: there is no record"},
			{"nval", "the new value; absent: remove the record"}, xtRow}},
	{name: "check", run: rpcCheck, need: right{read, aboutKey}, uses: usesDB, tally: tallyGet, expect: dberr.NoRecord,
		help: "tell the size of a value",
		in:   []row{keyRow},
		out:  []row{{"vsiz", "the size"}, expiryRow}},
	{name: "checksum", run: rpcChecksum, need: right{read, aboutDatabase}, uses: usesDB,
		help: "add up the records of a database in parts, so that two servers can be compared; ours",
		in: []row{{"by", "what ranges are of: key or hash (default hash)"},
			{"from", "first place of the range; a hash has 16 hexadecimal digits (default the first)"},
			{"to", "place behind the range (default all)"},
			{"_FROM", "instead of from and to: places TO, any number of ranges that do not overlap"},
			{"parts", "divide each range into so many parts (default 1)"},
			{"at", "leave out what has expired by this time, in seconds since 1970 (default now)"},
			{"keys", "list at most so many records instead"}},
		out: []row{{"_FROM", "COUNT:SUM:TO of a part, or with keys the digest of a record"},
			{"more", "1 if there are more than keys records"},
			{"ts", "time stamp of the server; all updates before it are in"}}},
	{name: "clear", run: rpcClear, need: right{write, aboutDatabase}, uses: usesDB, tally: tallyMisc,
		help: "remove all records of a database"},
	{name: "cur_delete", run: rpcCurDelete, need: right{0, aboutNothing},
		help: "end a cursor"},
	{name: "cur_get", run: rpcCurGet, need: right{read, aboutCursor}, uses: usesCursor, tally: tallyGet, expect: dberr.NoRecord,
		help: "get the record of a cursor",
		in:   []row{stepRow},
		out:  []row{keyRow, valueRow, expiryRow}},
	{name: "cur_get_key", run: rpcCurGetKey, need: right{read, aboutCursor}, uses: usesCursor, tally: tallyGet, expect: dberr.NoRecord,
		help: "get the key of a cursor's record",
		in:   []row{stepRow},
		out:  []row{keyRow}},
	{name: "cur_get_value", run: rpcCurGetValue, need: right{read, aboutCursor}, uses: usesCursor, tally: tallyGet, expect: dberr.NoRecord,
		help: "get the value of a cursor's record",
		in:   []row{stepRow},
		out:  []row{valueRow}},
	{name: "cur_jump", run: rpcCurJump, need: right{read, aboutCursor}, uses: usesCursor, tally: tallyMisc, expect: dberr.NoRecord,
		help: "move a cursor to a record",
		in:   []row{{"key", "the key, or in a tree the next larger one (default the first record)"}}},
	{name: "cur_jump_back", run: rpcCurJumpBack, need: right{read, aboutCursor}, uses: usesCursor, tally: tallyMisc, expect: dberr.NoRecord,
		help: "move a cursor to a record, to go backward from there; trees only",
		in:   []row{{"key", "the key, or the next smaller one (default the last record)"}}},
	{name: "cur_remove", run: rpcCurRemove, need: right{write, aboutCursor}, uses: usesCursor, tally: tallyRemove, expect: dberr.NoRecord,
		help: "remove the record of a cursor, which moves to the next"},
	{name: "cur_seize", run: rpcCurSeize, need: right{readWrite, aboutCursor}, uses: usesCursor, tally: tallyGet, expect: dberr.NoRecord,
		help: "get and remove the record of a cursor, which moves to the next",
		out:  []row{keyRow, valueRow, expiryRow}},
	{name: "cur_set_value", run: rpcCurSetValue, need: right{write, aboutCursor}, uses: usesCursor, tally: tallySet, expect: dberr.NoRecord,
		help: "replace the value of a cursor's record",
		in:   []row{valueRow, xtRow, stepRow}},
	{name: "cur_step", run: rpcCurStep, need: right{read, aboutCursor}, uses: usesCursor, tally: tallyMisc, expect: dberr.NoRecord,
		help: "move a cursor to the next record"},
	{name: "cur_step_back", run: rpcCurStepBack, need: right{read, aboutCursor}, uses: usesCursor, tally: tallyMisc, expect: dberr.NoRecord,
		help: "move a cursor to the record before; trees only"},
	{name: "echo", run: rpcEcho, need: right{0, aboutNothing},
		help: "answer with the input"},
	{name: "get", run: rpcGet, need: right{read, aboutKey}, uses: usesDB, tally: tallyGet, expect: dberr.NoRecord,
		help: "get the value of a record",
		in:   []row{keyRow},
		out:  []row{valueRow, expiryRow}},
	{name: "get_bulk", run: rpcGetBulk, need: right{read, aboutKeys}, uses: usesDB,
		help: "get many records",
		in:   []row{{"_KEY", "a key; the value does not count"}, atomicRow},
		out:  []row{{"_KEY", "the value of a record that exists"}, {"num", "how many exist"}}},
	{name: "help", run: rpcHelp, need: right{0, aboutNothing},
		help: "explain the procedures; ours",
		in:   []row{{"name", "explain the input of this procedure (default: list all procedures)"}},
		out:  []row{{"NAME", "what the procedure does, or what the row of its input is"}}},
	{name: "increment", run: rpcIncrement, need: right{readWrite, aboutKey}, uses: usesDB, tally: tallySet, expect: dberr.LogicInconsistency,
		help: "add to an integer, kept in 8 bytes",
		in:   []row{keyRow, numRow, origRow, xtRow},
		out:  []row{sumRow}},
	{name: "increment_double", run: rpcIncrementDouble, need: right{readWrite, aboutKey}, uses: usesDB, tally: tallySet, expect: dberr.LogicInconsistency,
		help: "add to a number with a fraction, kept in 16 bytes",
		in:   []row{keyRow, numRow, origRow, xtRow},
		out:  []row{sumRow}},
	{name: "match_prefix", run: rpcMatchPrefix, need: right{read, aboutPrefix}, uses: usesDB, tally: tallyMisc,
		help: "list the keys that begin with a prefix",
		in:   []row{{"prefix", "the prefix"}, maxRow},
		out:  []row{rankRow, foundRow}},
	{name: "match_regex", run: rpcMatchRegex, need: right{read, aboutDatabase}, uses: usesDB, tally: tallyMisc, expect: dberr.LogicInconsistency,
		help: "list the keys that match a regular expression",
		in:   []row{{"regex", "the expression, in POSIX extended syntax"}, maxRow},
		out:  []row{rankRow, foundRow}},
	{name: "match_similar", run: rpcMatchSimilar, need: right{read, aboutDatabase}, uses: usesDB, tally: tallyMisc, expect: dberr.LogicInconsistency,
		help: "list the keys that are similar to another, the most similar ones first",
		in: []row{{"origin", "the other key"}, {"range", "how many edits apart at most (default 1)"},
			{"utf", "if present: an edit is of a character of UTF-8, not of a byte"}, maxRow},
		out: []row{rankRow, foundRow}},
	{name: "play_script", run: rpcPlayScript,
		need: right{readWrite, aboutServer}, // a script may do what it likes
		help: "call a function of the server's Lua script",
		in:   []row{{"name", "the function, letters and digits only"}, {"_NAME", "an argument"}},
		out:  []row{{"_NAME", "a result"}}},
	{name: "remove", run: rpcRemove, need: right{write, aboutKey}, uses: usesDB, tally: tallyRemove, expect: dberr.NoRecord,
		help: "remove a record",
		in:   []row{keyRow}},
	{name: "remove_bulk", run: rpcRemoveBulk, need: right{write, aboutKeys}, uses: usesDB,
		help: "remove many records",
		in:   []row{{"_KEY", "a key; the value does not count"}, atomicRow},
		out:  []row{{"num", "how many were removed"}}},
	{name: "replace", run: rpcReplace, need: right{write, aboutKey}, uses: usesDB, tally: tallySet, expect: dberr.NoRecord,
		help: "store a record that exists",
		in:   []row{keyRow, valueRow, xtRow}},
	{name: "replicas", run: rpcReplicas, need: right{read, aboutServer},
		help: "list the followers of the server; ours",
		out:  []row{{"NUMBER", "a follower: fields NAME=VALUE with blanks between them"}}},
	{name: "report", run: rpcReport, need: right{read, aboutServer},
		help: "tell about the server",
		out:  []row{{"NAME", "a figure"}}},
	{name: "seize", run: rpcSeize, need: right{readWrite, aboutKey}, uses: usesDB, tally: tallySeize, expect: dberr.NoRecord,
		help: "get and remove a record",
		in:   []row{keyRow},
		out:  []row{valueRow, expiryRow}},
	{name: "set", run: rpcSet, need: right{write, aboutKey}, uses: usesDB, tally: tallySet,
		help: "store a record",
		in:   []row{keyRow, valueRow, xtRow}},
	{name: "set_bulk", run: rpcSetBulk, need: right{write, aboutKeys}, uses: usesDB,
		help: "store many records",
		in:   []row{{"_KEY", "a value"}, xtRow, atomicRow},
		out:  []row{{"num", "how many were stored"}}},
	{name: "status", run: rpcStatus, need: right{read, aboutDatabase}, uses: usesDB, tally: tallyMisc,
		help: "tell about a database",
		out:  []row{{"NAME", "a figure"}}},
	{name: "synchronize", run: rpcSynchronize, need: right{write, aboutFile}, uses: usesDB, tally: tallyMisc,
		help: "bring the file of a database up to date, and have a command run then",
		in: []row{{"hard", "if present: down to the disk"},
			{"command", "a command in the directory of -cmd; it is given the path and a time stamp"}}},
	{name: "tune_replication", run: rpcTuneReplication, need: right{access.Admin, aboutServer},
		help: "change the master; without any of host, port, ts, iv and with one of ours the master stays",
		in: []row{{"host", "the master (default none)"}, {"port", "its port (default 1978)"},
			{"ts", "replicate what is newer than this time stamp, or now (default as before)"},
			{"iv", "milliseconds that each update costs at least (default as before)"},
			{"copy", "true: have all databases replaced by copies of the master's; ours"},
			{"readonly", "true or false: refuse updates of clients from now on, or accept them; ours"},
			{"primary", "true or force: make this server the primary of the services; ours"}}},
	{name: "ulog_list", run: rpcUlogList, need: right{access.Replicate, aboutServer},
		help: "list the files of the update log",
		out:  []row{{"PATH", "SIZE:TS of a file, TS the newest time stamp in it"}}},
	{name: "ulog_reach", run: rpcUlogReach, need: right{access.Replicate, aboutServer},
		help: "tell whether everything newer than a time stamp is still in the update log; ours",
		in:   []row{{"ts", "the time stamp"}},
		out:  []row{{"gap", "1 if some of it is gone or may be"}, {"id", "the log's ID, which a new log does not have"}}},
	{name: "ulog_remove", run: rpcUlogRemove, need: right{access.Admin, aboutServer},
		help: "remove old files of the update log; files that are needed stay",
		in:   []row{{"ts", "those that hold nothing newer than this time stamp, or now (default all)"}}},
	{name: "vacuum", run: rpcVacuum, need: right{write, aboutDatabase}, uses: usesDB, tally: tallyMisc,
		help: "remove expired records",
		in:   []row{{"step", "do so many steps of the collector; 1 or less: look at all records (default)"}}},
	{name: "void", run: rpcVoid, need: right{0, aboutNothing},
		help: "do nothing"},
}
