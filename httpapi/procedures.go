package httpapi

import "gotycoon/db"

// uses says which of the common parameters a procedure needs (section 5).
type uses byte

const (
	usesNothing uses = iota
	usesDB
	usesCursor
)

// tally says which counters a call of a procedure adds to (section 10).
type tally byte

const (
	tallyNone tally = iota
	tallySet
	tallyRemove
	tallyGet
	tallySeize
	tallyMisc
)

// procedure is a row of the table below.
type procedure struct {
	name  string
	run   func(*Session) error
	uses  uses
	tally tally

	// expect is the database error that is a normal outcome and answered with 450; db.Success: none is.
	expect db.Code
}

// procedures lists every remote procedure.
var procedures = [...]procedure{
	{"add", rpcAdd, usesDB, tallySet, db.RecordDuplication},
	{"append", rpcAppend, usesDB, tallySet, db.Success},
	{"cas", rpcCas, usesDB, tallySet, db.LogicInconsistency},
	{"check", rpcCheck, usesDB, tallyGet, db.NoRecord},
	{"checksum", rpcChecksum, usesDB, tallyNone, db.Success},
	{"clear", rpcClear, usesDB, tallyMisc, db.Success},
	{"cur_delete", rpcCurDelete, usesNothing, tallyNone, db.Success},
	{"cur_get", rpcCurGet, usesCursor, tallyGet, db.NoRecord},
	{"cur_get_key", rpcCurGetKey, usesCursor, tallyGet, db.NoRecord},
	{"cur_get_value", rpcCurGetValue, usesCursor, tallyGet, db.NoRecord},
	{"cur_jump", rpcCurJump, usesCursor, tallyMisc, db.NoRecord},
	{"cur_jump_back", rpcCurJumpBack, usesCursor, tallyMisc, db.NoRecord},
	{"cur_remove", rpcCurRemove, usesCursor, tallyRemove, db.NoRecord},
	{"cur_seize", rpcCurSeize, usesCursor, tallyGet, db.NoRecord},
	{"cur_set_value", rpcCurSetValue, usesCursor, tallySet, db.NoRecord},
	{"cur_step", rpcCurStep, usesCursor, tallyMisc, db.NoRecord},
	{"cur_step_back", rpcCurStepBack, usesCursor, tallyMisc, db.NoRecord},
	{"echo", rpcEcho, usesNothing, tallyNone, db.Success},
	{"get", rpcGet, usesDB, tallyGet, db.NoRecord},
	{"get_bulk", rpcGetBulk, usesDB, tallyNone, db.Success},
	{"increment", rpcIncrement, usesDB, tallySet, db.LogicInconsistency},
	{"increment_double", rpcIncrementDouble, usesDB, tallySet, db.LogicInconsistency},
	{"match_prefix", rpcMatchPrefix, usesDB, tallyMisc, db.Success},
	{"match_regex", rpcMatchRegex, usesDB, tallyMisc, db.LogicInconsistency},
	{"match_similar", rpcMatchSimilar, usesDB, tallyMisc, db.LogicInconsistency},
	{"play_script", rpcPlayScript, usesNothing, tallyNone, db.Success},
	{"remove", rpcRemove, usesDB, tallyRemove, db.NoRecord},
	{"remove_bulk", rpcRemoveBulk, usesDB, tallyNone, db.Success},
	{"replace", rpcReplace, usesDB, tallySet, db.NoRecord},
	{"replicas", rpcReplicas, usesNothing, tallyNone, db.Success},
	{"report", rpcReport, usesNothing, tallyNone, db.Success},
	{"seize", rpcSeize, usesDB, tallySeize, db.NoRecord},
	{"set", rpcSet, usesDB, tallySet, db.Success},
	{"set_bulk", rpcSetBulk, usesDB, tallyNone, db.Success},
	{"status", rpcStatus, usesDB, tallyMisc, db.Success},
	{"synchronize", rpcSynchronize, usesDB, tallyMisc, db.Success},
	{"tune_replication", rpcTuneReplication, usesNothing, tallyNone, db.Success},
	{"ulog_list", rpcUlogList, usesNothing, tallyNone, db.Success},
	{"ulog_reach", rpcUlogReach, usesNothing, tallyNone, db.Success},
	{"ulog_remove", rpcUlogRemove, usesNothing, tallyNone, db.Success},
	{"vacuum", rpcVacuum, usesDB, tallyMisc, db.Success},
	{"void", rpcVoid, usesNothing, tallyNone, db.Success},
}

func procedureMap() map[string]*procedure {
	m := make(map[string]*procedure, len(procedures))
	for i := range procedures {
		m[procedures[i].name] = &procedures[i]
	}
	return m
}
