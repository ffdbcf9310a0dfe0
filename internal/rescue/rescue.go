// Package rescue keeps a panic, which is a mistake in the program, from ending more than the request that met it.
//
// # What may be rescued
//
// A goroutine that panics in the middle of the engine may have a key's stripe or the commit lock, and the log may be ahead of the
// store. Going on would leave others waiting for ever, or make wrong what they read: nobody knows what state the data is in. The log
// on the disk is as it was, so the right thing is to end the process at once, loudly, and to recover from the log at the next start.
//
// A goroutine that panics in a protocol's code (a message taken apart, a table made for the console) has nothing that others need:
// its request ends, and its connection.
//
// The two are told apart by the functions that were being called: Do looks at the frames between itself and the panic, and when one of
// them is in a package whose state others share, the process ends. The alternative, unlocking with defer everywhere and marking the
// databases as failed, would cost each update, and would have to be right in every one of these places.
package rescue

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
)

// shared are the packages whose functions hold locks that others need, or are in the middle of a change. A name stands for what is below it, too.
func shared(function string) bool {
	for _, name := range [...]string{
		"gotycoon/db", "gotycoon/ulog", "gotycoon/primary", "gotycoon/coconut", "gotycoon/counter", "gotycoon/jesync",
		"gotycoon/replication", "gotycoon/snapshot", "go.etcd.io/bbolt",
	} {
		if rest, ok := strings.CutPrefix(function, name); ok && (rest[0] == '.' || rest[0] == '/') {
			return true
		}
	}
	return false
}

// Error is a panic that ended a request.
type Error struct{ Value any }

// Error says that the mistake is the program's.
func (e *Error) Error() string {
	return fmt.Sprintf("a fault of the server, its log has more: %v", e.Value)
}

// Do calls f, which serves what. When f panics, the log has an ERROR line with the stack, and Do returns an *Error; when the panic
// comes from the engine, the process ends.
func Do(log *slog.Logger, what string, f func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			Judge(log, what, value, "gotycoon/internal/rescue.Do")
			err = &Error{value}
		}
	}()
	f()
	return nil
}

// Judge writes an ERROR line about a panic whose value a deferred function has just recovered. It does not return when a function of
// the engine was being called below until, a function's name with its package: the process ends.
func Judge(log *slog.Logger, what string, value any, until string) {
	line := fmt.Sprintf("panic: %v: %s", value, what)
	if InEngine(until) {
		log.Error(line + ": it comes from the engine, whose state is not known now: the process ends\n" + string(debug.Stack()))
		end(line)
	}
	log.Error(line + "\n" + string(debug.Stack()))
}

// InEngine reports whether a function of the engine is being called between this one and until. Deferred functions see the functions
// that panicked.
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

// end ends the process as a panic does that nobody recovers: from a goroutine of its own, since somebody further up might recover this
// one. It does not return, so that no deferred function of the engine unlocks anything.
func end(line string) {
	go panic(line)
	select {}
}
