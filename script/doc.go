// Package script runs procedures that the server's user has written in Lua 5.1: the calls of play_script.
//
//	Pool.Call(name, in, out)         lends one of the interpreters
//	state.call                       the global function, its input and output tables, its result
//	kt.*, db:*, cursor:*             one file per family; see docs/lua.md for what they do
//	handle.use                       which database an operation goes to: the server's, or the transaction of this call
//
// The interpreter is github.com/yuin/gopher-lua. What scripts can see of its differences to the reference interpreter is put right
// here: chunks are compiled from a syntax tree whose concatenations are calls of ours (rewrite.go), chunks that only the library
// accepts are refused (strict.go), number texts and string functions are our own (number.go, lib_string.go, pattern.go).
//
// A script runs without any of the server's locks, but a visitor has its record's key locked (db.DB.Accept). Interpreters that keep
// something locked never wait for each other in a circle: see holds.
package script
