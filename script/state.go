package script

import (
	lua "github.com/yuin/gopher-lua"

	"gotycoon/db"
	"gotycoon/db/dberr"
)

// state is one interpreter. It belongs to the goroutine that has taken it from the pool.
type state struct {
	budget
	pool      *shared
	thid      int
	l         *lua.LState
	loader    *loader
	protector *protector
	classes   classes // kt.DB and the others

	// Of the call being served.
	owed   *db.Pending
	begun  []*handle // databases in a transaction that this call has begun
	dirty  []*handle // databases of the script's own with updates that may not be durable
	holder *holder   // the holds of the call
}

// handle is the Go side of a database object.
type handle struct {
	s      *state
	db     *db.DB // nil: not open
	served bool   // it is a database of the server; otherwise file is the script's own
	file   *file

	tx    *db.Transaction // begun by this call; nil: none
	owed  db.Pending      // updates of the script's own database that may not be durable
	dirty bool            // owed may have updates
	busy  int             // visitors that are running

	code    dberr.Code // last error
	message string
}

// classes are the tables of the classes, and what their objects are made of.
type classes struct {
	errors, visitor, processor, cursor, db *lua.LTable
	dbMembers, cursorMembers, errorMembers []member
	dbMeta, cursorMeta, errorMeta          *lua.LTable
	remove, nop                            *lua.LUserData
}

// member is a field that all objects of a class have.
type member struct {
	name  string
	value lua.LValue
}
