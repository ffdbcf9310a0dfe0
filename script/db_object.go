package script

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"gotycoon/db"
	"gotycoon/db/record"
)

// openDB makes the class DB.
func (s *state) openDB(kt *lua.LTable) {
	k := &s.classes
	k.db, k.dbMeta = s.class(kt, "DB", s.function("db_new", 1, anyNumber, dbNew), map[string]*lua.LFunction{
		"__index":    s.function("db_index", 2, 2, dbIndex),
		"__newindex": s.function("db_newindex", 3, 3, dbNewIndex),
		"__tostring": s.function("db_tostring", 1, anyNumber, dbString),
	})
	numbers(k.db, []number64{{"OREADER", openReader}, {"OWRITER", openWriter}, {"OCREATE", openCreate}, {"OTRUNCATE", openTruncate},
		{"OAUTOTRAN", 16}, {"OAUTOSYNC", 32}, {"ONOLOCK", 64}, {"OTRYLOCK", 128}, {"ONOREPAIR", 256},
		{"MSET", mergeSet}, {"MADD", mergeAdd}, {"MREPLACE", mergeReplace}, {"MAPPEND", mergeAppend},
		{"XNOLOCK", reduceNoLock}, {"XNOCOMP", 256}})
	k.db.RawSetString("new_ptr", s.function("db_new_ptr", 0, anyNumber, dbNewPtr))
	k.db.RawSetString("delete_ptr", s.function("db_delete_ptr", 2, 2, dbDeletePtr))
	k.db.RawSetString("process", s.function("db_process", 2, 4, dbProcess))
	for _, m := range dbMethods() {
		k.dbMembers = append(k.dbMembers, member{m.name, s.function("db_"+m.name, m.least, m.most, m.body)})
	}
	k.dbMembers = append(k.dbMembers, member{"err_", k.errors}, member{"cur_", k.cursor})
}

func dbMethods() []method {
	return []method{
		{"error", 1, 1, dbError}, {"open", 1, 3, dbOpen}, {"close", 1, 1, dbClose},
		{"set", 3, 4, dbSet}, {"add", 3, 4, dbAdd}, {"replace", 3, 4, dbReplace}, {"append", 3, 4, dbAppend},
		{"remove", 2, 2, dbRemove}, {"clear", 1, 1, dbClear}, {"get", 2, 2, dbGet}, {"seize", 2, 2, dbSeize},
		{"check", 2, 2, dbCheck}, {"increment", 2, 5, dbIncrement}, {"increment_double", 2, 5, dbIncrementDouble},
		{"cas", 4, 5, dbCas}, {"set_bulk", 2, 4, dbSetBulk}, {"remove_bulk", 2, 3, dbRemoveBulk},
		{"get_bulk", 2, 3, dbGetBulk}, {"accept", 3, 4, dbAccept}, {"accept_bulk", 3, 4, dbAcceptBulk},
		{"iterate", 2, 3, dbIterate}, {"begin_transaction", 1, 2, dbBeginTransaction},
		{"end_transaction", 1, 2, dbEndTransaction}, {"transaction", 2, 3, dbTransaction},
		{"match_prefix", 2, 3, dbMatchPrefix}, {"match_regex", 2, 3, dbMatchRegex}, {"match_similar", 2, 5, dbMatchSimilar},
		{"merge", 2, 3, dbMerge}, {"mapreduce", 3, 10, dbMapReduce}, {"cursor", 1, 1, dbCursor},
		{"cursor_process", 2, 2, dbCursorProcess}, {"pairs", 1, 1, dbPairs}, {"count", 1, 1, dbCount}, {"size", 1, 1, dbSize},
		{"path", 1, 1, dbPath}, {"status", 1, 1, dbStatus}, {"synchronize", 1, 3, dbSynchronize}, {"occupy", 1, 3, dbOccupy},
		{"copy", 2, 2, dbCopy}, {"dump_snapshot", 2, 2, dbDumpSnapshot}, {"load_snapshot", 2, 2, dbLoadSnapshot},
	}
}

func dbNew(c call) int {
	c.table(1)
	h := &handle{s: c.s, message: "no error"}
	if u, ok := c.l.Get(2).(*lua.LUserData); ok { // made by new_ptr
		if given, ok := u.Value.(*handle); ok {
			h = given
		}
	}
	c.l.Push(c.s.newDB(h))
	return 1
}

func dbNewPtr(c call) int {
	c.l.Push(c.s.userdata(&handle{s: c.s, message: "no error"}))
	return 1
}

func dbDeletePtr(c call) int {
	u, ok := c.l.Get(2).(*lua.LUserData)
	if !ok {
		c.refuse()
	}
	if h, ok := u.Value.(*handle); ok && !h.served && h.db != nil {
		h.note(h.closeFile())
	}
	return 0
}

func dbError(c call) int {
	h := c.handleOf(1)
	c.l.Push(c.s.newError(h.code, h.message))
	return 1
}

// dbIndex serves db.KEY: it reads a record.
func dbIndex(c call) int {
	h := c.handleOf(1)
	key, ok := text(c.l.Get(2))
	if !ok {
		c.refuse()
	}
	var value []byte
	found := h.do(c, func(d *db.DB) (err error) {
		value, _, err = d.Get(h.pending(), nil, []byte(key))
		return err
	})
	if !found {
		return c.pushNil()
	}
	return c.pushBytes(value)
}

// dbNewIndex serves db.KEY = VALUE: it stores a record. A value that is neither string nor number
// removes the record.
func dbNewIndex(c call) int {
	h := c.handleOf(1)
	key := c.bytes(2)
	value, ok := text(c.l.Get(3))
	h.do(c, func(d *db.DB) error {
		if !ok {
			return d.Remove(h.pending(), key)
		}
		return d.Set(h.pending(), key, []byte(value), record.Never)
	})
	return 0
}

func dbString(c call) int {
	h := c.handleOf(1)
	path, count, size := "(nil)", int64(-1), int64(-1)
	if h.db != nil {
		path = h.db.Info().Path
		count, _ = h.current().Count(h.pending())
		size = h.current().Size()
	}
	return c.pushBytes(fmt.Appendf(nil, "%s: %d: %d", path, count, size))
}
