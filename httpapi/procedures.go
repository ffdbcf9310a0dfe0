package httpapi

import (
	"fmt"

	"gotycoon/access"
	"gotycoon/db/dberr"
)

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

// Rows of the procedures that watch requests.
var (
	everyRow    = row{"every", "one of so many requests (default 1: each)"}
	protocolRow = row{"protocol", "only of this protocol, such as rpc, rest, binary, memcached"}
	commandRow  = row{"command", "only this command"}
	databaseRow = row{"database", "only of this database, by number or name"}
	prefixRow   = row{"prefix", "only for keys that begin so"}
	peerRow     = row{"peer", "only of clients whose address begins so"}
)

func secondsRow(standard int) row {
	return row{"seconds", fmt.Sprintf("watch for so long, a minute at most (default %d)", standard)}
}

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
	{name: "cluster_change", run: rpcClusterChange, need: right{access.Admin, aboutServer}, local: true,
		help: "have the primary of the cluster change the cluster; ours",
		in: []row{{"do", "switchover: make the member name the primary; add: make a server a member; remove: end the membership of name; " +
			"require: answer updates when number followers have them"},
			{"name", "of the member, HOST:PORT"}, {"witness", "if present: the added server votes and has no data"},
			{"number", "of followers"}}},
	{name: "cluster_status", run: rpcClusterStatus, need: right{read, aboutServer},
		help: "list the members of the cluster; ours",
		out:  []row{{"_NAME", "what a member says of itself, or that it does not answer"}}},
	{name: "compact", run: rpcCompact, need: right{write, aboutDatabase}, local: true, uses: usesDB, tally: tallyMisc,
		help: "begin to compact the file of a database: give unused disk space back while the database is in use; ours",
		in: []row{{"wait", "answer when the compaction has ended, at the latest after so many seconds (default 0)"},
			{"look", "if present: begin none, only tell of it"},
			{"abort", "if present: end the compaction under way; the file stays as it is"}},
		out: []row{{"running", "1 while the compaction is under way"}, {"copied", "bytes of records that are copied"},
			{"total", "about how many there are"}, {"before", "size of the file before the compaction that has ended"}, {"after", "and after it"}}},
	{name: "cur_check", run: rpcCurCheck, need: right{read, aboutCursor}, uses: usesCursor, tally: tallyGet, expect: dberr.NoRecord,
		help: "tell key and size of a cursor's record; ours",
		in:   []row{stepRow},
		out:  []row{keyRow, {"vsiz", "the size of the value"}, expiryRow}},
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
	{name: "hotkeys", run: rpcHotKeys, need: right{access.Admin, aboutServer}, local: true,
		help: "count the requests for each key for some seconds, and tell the keys with the most; ours",
		in:   []row{secondsRow(5), {"max", "tell so many keys at most (default 10)"}, everyRow, protocolRow, commandRow, databaseRow, prefixRow, peerRow},
		out: []row{{"NUMBER", "a key: count, the requests for it, at most; over, so many of them may be for other keys; " +
			"long, 1 if only the beginning of the key is known; db and key, quoted"},
			{"seen", "how many requests for keys were counted"},
			{"left", "how many were left out, because others were just being counted"}}},
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
	{name: "monitor", run: rpcMonitor, need: right{access.Admin, aboutServer}, local: true,
		help: "show the requests of all ports: those since the last call of the connection, or the next ones; ours",
		in: []row{secondsRow(1), {"max", "show so many requests at most (default and most: 1000)"}, everyRow, protocolRow, commandRow, databaseRow,
			prefixRow, peerRow, {"failed", "if present: only requests that have failed"}},
		out: []row{{"NUMBER", "a request: fields NAME=VALUE with blanks between them; db and key are quoted"},
			{"missed", "how many more there were than could be kept"}}},
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
	{name: "synchronize", run: rpcSynchronize, need: right{write, aboutFile}, local: true, uses: usesDB, tally: tallyMisc,
		help: "bring the file of a database up to date, and have a command run then",
		in: []row{{"hard", "if present: down to the disk"},
			{"command", "a command in the directory of -cmd; it is given the path and a time stamp"}}},
	{name: "touch", run: rpcTouch, need: right{write, aboutKey}, uses: usesDB, tally: tallySet, expect: dberr.NoRecord,
		help: "set when a record expires, without its value; ours",
		in:   []row{keyRow, xtRow}},
	{name: "tune_replication", run: rpcTuneReplication, need: right{access.Admin, aboutServer},
		help: "change the master; without any of host, port, ts, iv and with one of ours the master stays",
		in: []row{{"host", "the master (default none)"}, {"port", "its port (default 1978)"},
			{"ts", "replicate what is newer than this time stamp, or now (default as before)"},
			{"iv", "milliseconds that each update costs at least (default as before)"},
			{"copy", "true: have all databases replaced by copies of the master's; ours"},
			{"readonly", "true or false: refuse updates of clients from now on, or accept them; ours"},
			{"primary", "true or force: make this server the primary of the services; ours"}}},
	{name: "ulog_hold", run: rpcUlogHold, need: right{access.Admin, aboutServer},
		help: "keep files of the update log, also when the server is started again; ours",
		in: []row{{"name", "name of the hold: 1 to 64 letters, digits or any of . _ -; a hold with this name is replaced"},
			{"ts", "keep what is newer than this time stamp, or now (default: as before; a new hold: the end of the log)"},
			{"ttl", "seconds that the hold lasts, at most a year (default 86400)"}},
		out: []row{{"ts", "the time stamp"}, {"gap", "1 if some of what is newer is gone already or may be; the rest is kept"}}},
	{name: "ulog_holds", run: rpcUlogHolds, need: right{access.Replicate, aboutServer},
		help: "list who needs files of the update log; ours",
		out:  []row{{"NUMBER", "a holder: fields NAME=VALUE with blanks between them; the last one, what, says who it is"}}},
	{name: "ulog_list", run: rpcUlogList, need: right{access.Replicate, aboutServer},
		help: "list the files of the update log",
		out:  []row{{"PATH", "SIZE:TS of a file, TS the newest time stamp in it"}}},
	{name: "ulog_reach", run: rpcUlogReach, need: right{access.Replicate, aboutServer},
		help: "tell whether everything newer than a time stamp is still in the update log; ours",
		in:   []row{{"ts", "the time stamp"}},
		out:  []row{{"gap", "1 if some of it is gone or may be"}, {"id", "the log's ID, which a new log does not have"}}},
	{name: "ulog_release", run: rpcUlogRelease, need: right{access.Admin, aboutServer}, expect: dberr.NoRecord,
		help: "end a hold of ulog_hold; ours",
		in:   []row{{"name", "name of the hold"}}},
	{name: "ulog_remove", run: rpcUlogRemove, need: right{access.Admin, aboutServer},
		help: "remove old files of the update log; files that are needed stay",
		in:   []row{{"ts", "those that hold nothing newer than this time stamp, or now (default all)"}}},
	{name: "vacuum", run: rpcVacuum, need: right{write, aboutDatabase}, local: true, uses: usesDB, tally: tallyMisc,
		help: "remove expired records",
		in:   []row{{"step", "do so many steps of the collector; 1 or less: look at all records (default)"}}},
	{name: "void", run: rpcVoid, need: right{0, aboutNothing},
		help: "do nothing"},
	{name: "wait_replicas", run: rpcWaitReplicas, need: right{0, aboutNothing},
		help: "wait until so many followers have what was written until now; status 503 if they do not; ours",
		in: []row{{"replicas", "followers (default those of -sync-replicas, at least 1)"},
			{"ts", "up to this time stamp of the update log, or position of a reply (default all until now)"},
			{"timeout", "for so many seconds at most (default 5)"}},
		out: []row{{"replicas", "how many have it"}, {"ts", "up to where"}}},
}
