package httpapi

import (
	"gotycoon/db/dberr"
)

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
	expect dberr.Code
}

// procedures lists every remote procedure.
var procedures = [...]procedure{
	{"add", rpcAdd, usesDB, tallySet, dberr.RecordDuplication},
	{"append", rpcAppend, usesDB, tallySet, dberr.Success},
	{"cas", rpcCas, usesDB, tallySet, dberr.LogicInconsistency},
	{"check", rpcCheck, usesDB, tallyGet, dberr.NoRecord},
	{"checksum", rpcChecksum, usesDB, tallyNone, dberr.Success},
	{"clear", rpcClear, usesDB, tallyMisc, dberr.Success},
	{"cur_delete", rpcCurDelete, usesNothing, tallyNone, dberr.Success},
	{"cur_get", rpcCurGet, usesCursor, tallyGet, dberr.NoRecord},
	{"cur_get_key", rpcCurGetKey, usesCursor, tallyGet, dberr.NoRecord},
	{"cur_get_value", rpcCurGetValue, usesCursor, tallyGet, dberr.NoRecord},
	{"cur_jump", rpcCurJump, usesCursor, tallyMisc, dberr.NoRecord},
	{"cur_jump_back", rpcCurJumpBack, usesCursor, tallyMisc, dberr.NoRecord},
	{"cur_remove", rpcCurRemove, usesCursor, tallyRemove, dberr.NoRecord},
	{"cur_seize", rpcCurSeize, usesCursor, tallyGet, dberr.NoRecord},
	{"cur_set_value", rpcCurSetValue, usesCursor, tallySet, dberr.NoRecord},
	{"cur_step", rpcCurStep, usesCursor, tallyMisc, dberr.NoRecord},
	{"cur_step_back", rpcCurStepBack, usesCursor, tallyMisc, dberr.NoRecord},
	{"echo", rpcEcho, usesNothing, tallyNone, dberr.Success},
	{"get", rpcGet, usesDB, tallyGet, dberr.NoRecord},
	{"get_bulk", rpcGetBulk, usesDB, tallyNone, dberr.Success},
	{"increment", rpcIncrement, usesDB, tallySet, dberr.LogicInconsistency},
	{"increment_double", rpcIncrementDouble, usesDB, tallySet, dberr.LogicInconsistency},
	{"match_prefix", rpcMatchPrefix, usesDB, tallyMisc, dberr.Success},
	{"match_regex", rpcMatchRegex, usesDB, tallyMisc, dberr.LogicInconsistency},
	{"match_similar", rpcMatchSimilar, usesDB, tallyMisc, dberr.LogicInconsistency},
	{"play_script", rpcPlayScript, usesNothing, tallyNone, dberr.Success},
	{"remove", rpcRemove, usesDB, tallyRemove, dberr.NoRecord},
	{"remove_bulk", rpcRemoveBulk, usesDB, tallyNone, dberr.Success},
	{"replace", rpcReplace, usesDB, tallySet, dberr.NoRecord},
	{"replicas", rpcReplicas, usesNothing, tallyNone, dberr.Success},
	{"report", rpcReport, usesNothing, tallyNone, dberr.Success},
	{"seize", rpcSeize, usesDB, tallySeize, dberr.NoRecord},
	{"set", rpcSet, usesDB, tallySet, dberr.Success},
	{"set_bulk", rpcSetBulk, usesDB, tallyNone, dberr.Success},
	{"status", rpcStatus, usesDB, tallyMisc, dberr.Success},
	{"synchronize", rpcSynchronize, usesDB, tallyMisc, dberr.Success},
	{"tune_replication", rpcTuneReplication, usesNothing, tallyNone, dberr.Success},
	{"ulog_list", rpcUlogList, usesNothing, tallyNone, dberr.Success},
	{"ulog_reach", rpcUlogReach, usesNothing, tallyNone, dberr.Success},
	{"ulog_remove", rpcUlogRemove, usesNothing, tallyNone, dberr.Success},
	{"vacuum", rpcVacuum, usesDB, tallyMisc, dberr.Success},
	{"void", rpcVoid, usesNothing, tallyNone, dberr.Success},
}

func procedureMap() map[string]*procedure {
	m := make(map[string]*procedure, len(procedures))
	for i := range procedures {
		m[procedures[i].name] = &procedures[i]
	}
	return m
}
