// Package script runs the procedures that the user of the server has written in Lua 5.1: the calls
// of play_script.
//
//	Pool.Call(name, in, out)      lends one of the interpreters (pool.go)
//	state.call                    the function, its tables, its result (run.go)
//	leash, memory, room           end a call that takes too long or too much
//	kt.*, db:*, cursor:*          a Go function for each; docs/lua.md says what they do; they
//	                              are listed in server.go, db_object.go and cursor.go
//	handle.do                     which database an operation goes to, and what waits for whom
//
// Each file uses only files of a lower layer:
//
//	pool.go                                     the interpreters, and who gets one
//	run.go                                      one interpreter: how it is made, and its calls
//	server.go lib_base.go                       what a script finds when it begins
//	db_*.go cursor.go visitor.go file.go …      the functions
//	handle.go object.go call.go                 a database; objects; arguments and results
//	state.go shared.go files.go holds.go        the state of an interpreter, and what all share
//	load.go protect.go operators.go lib_*.go    the language
//	leash.go memory.go room.go                  limits
//	rewrite.go strict.go number.go pattern.go   syntax, numbers, patterns
//
// # The language
//
// The interpreter is github.com/yuin/gopher-lua. A script must compute the same results as in the
// reference interpreter, so what differs is replaced:
//
//	strict.go, rewrite.go         refuse chunks that only the library accepts, and compile
//	                              concatenations to calls of our own function
//	operators.go, number.go       arithmetic with texts, numbers as text
//	lib_*.go, pattern.go          library functions with other results or without limits
//	protect.go                    pcall: the library breaks variables of closures
//
// Error messages are the library's own: only their wording differs (compat/DIFFERENCES.md).
//
// # Locks
//
// A script runs without any lock of the server. A visitor runs with its record's key locked
// (db.DB.Accept), and a transaction keeps the updates of others waiting. Calls that keep something
// locked never wait for each other in a circle: see holds.
//
// # Limits
//
// The interpreter looks at its leash before each instruction. A Go function is one instruction to
// it, so each function that can take long calls leash.work or leash.check itself, and each function
// that can make a large value asks for room before it does.
package script
