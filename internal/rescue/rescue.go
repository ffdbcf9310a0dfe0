// Package rescue limits the damage of a panic, that is, of a mistake in the program, to the request
// that caused it.
//
// # What may be rescued
//
// A goroutine that panics within the engine may hold the stripe of a key or the commit lock, and
// the log may be ahead of the store. If the process continued, other goroutines would wait for ever
// or read wrong data: nobody knows the state of the data in memory. The log on the disk is intact.
// So the process ends at once, with an ERROR line, and the next start recovers from the log.
//
// A goroutine that panics in the code of a protocol (it parses a message, it makes a table for the
// console) holds nothing that others need. Only its request and its connection end.
//
// The stack tells the two cases apart: Do looks at the frames between itself and the panic, and
// ends the process if one of them is in a package with shared state. Rejected: unlock with defer
// everywhere and mark the databases as failed. Each update would take longer, and a single place
// without such a defer would leave a lock held for ever.
package rescue

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// shared reports whether a function belongs to the engine: the packages whose functions hold locks
// that others need, or may be in the middle of a change. A name in the list covers the packages
// below it.
func shared(function string) bool {
	for _, name := range [...]string{
		"gotycoon/db", "gotycoon/ulog", "gotycoon/services",
		"gotycoon/replication", "gotycoon/snapshot", "go.etcd.io/bbolt",
	} {
		if rest, ok := strings.CutPrefix(function, name); ok && (rest[0] == '.' || rest[0] == '/') {
			return true
		}
	}
	return false
}

// Counter is implemented by a handler of log lines that counts panics, whatever the level of its
// lines is.
type Counter interface{ Panicked() }

// Error is a panic that ended a request.
type Error struct{ Value any }

// Error says that the program has a mistake.
func (e *Error) Error() string {
	return fmt.Sprintf("a fault of the server, its log has more: %v", e.Value)
}

// Do calls f; what names the work of f. If f panics, Do logs an ERROR line with the stack and
// returns an *Error. If the panic comes from the engine, the process ends instead.
//
// meant are values with which f panics on purpose, such as http.ErrAbortHandler, which ends a reply
// that has begun. Such a panic is no mistake: Do passes it on, without a line and uncounted, unless
// it comes from the engine.
func Do(log *slog.Logger, what string, f func(), meant ...error) (err error) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		const until = "gotycoon/internal/rescue.Do"
		if e, ok := value.(error); ok && slices.Contains(meant, e) && !InEngine(until) {
			panic(value)
		}
		Judge(log, what, value, until)
		err = &Error{value}
	}()
	f()
	return nil
}

// Judge logs and counts a panic that a deferred function has just recovered, as an ERROR line. If a
// function of the engine is on the stack of the panic, the process ends and Judge does not return.
// until is the name, with its package, of the function that deferred the caller: the search of the
// stack ends there.
func Judge(log *slog.Logger, what string, value any, until string) {
	line := fmt.Sprintf("panic: %v: %s", value, what)
	if c, ok := log.Handler().(Counter); ok {
		c.Panicked()
	}
	if InEngine(until) {
		log.Error(line + ": the panic comes from the engine, whose state is not known now: the process ends. " +
			"Acknowledged updates are in the update log, where there is one. If the panic comes again, see whether " +
			"a database file is damaged: kttimedmgr verify FILE\n" + string(debug.Stack()))
		end(line)
	}
	log.Error(line + "\n" + string(debug.Stack()))
}

// InEngine reports whether a function of the engine is on the stack between this call and the
// function until. While a deferred function runs after a panic, the stack still has the functions
// that panicked. Closures within until (until.func1, …) do not end the search: the deferred
// function that calls InEngine is such a closure, and lies above the frames of the panic.
func InEngine(until string) bool {
	pcs := make([]uintptr, 1024)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		if strings.HasPrefix(frame.Function, until) && !strings.HasPrefix(frame.Function, until+".func") {
			return false
		}
		if shared(frame.Function) {
			return true
		}
		if !more {
			return false
		}
	}
}

// end ends the process with a panic in a goroutine of its own, because a caller further up might
// recover a panic in the present goroutine. end does not return, so that no deferred function of
// the engine runs and unlocks something.
func end(line string) {
	go panic(line)
	select {}
}
