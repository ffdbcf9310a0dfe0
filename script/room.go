package script

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"gotycoon/db/keymatch"
	"gotycoon/internal/pieces"
)

// room counts the large texts and tables that Go functions make for a script.
//
// A single call of string.rep or kt.unpack can take more memory than there is, between two
// instructions. Measuring the interpreter afterwards, as memory does, would be too late. So a
// function asks for room before it makes a large value, and raises an error if there is none.
//
// A value counts until Go's collector has found it unreachable: a cleanup then gives the room back.
// If room is short, the collector is started first.
type room struct {
	limit int64        // bytes; 0: any number
	taken atomic.Int64 // bytes of values that have not been collected
	above *room        // of the whole pool; nil: none
}

// largeText is the length from which on a text counts.
const largeText = 4 << 10

// has reports whether there is room for n bytes more.
func (r *room) has(n int64) bool {
	for ; r != nil; r = r.above {
		if r.limit > 0 && n > r.limit-r.taken.Load() {
			return false
		}
	}
	return true
}

// add counts bytes. A negative number gives them back.
func (r *room) add(n int64) {
	for ; r != nil; r = r.above {
		r.taken.Add(n)
	}
}

// limited reports whether this room or a room above it has a limit.
func (r *room) limited() bool { return r.limit > 0 || r.above != nil && r.above.limit > 0 }

// collectTime is how long find waits for the effect of a collection.
const collectTime = 100 * time.Millisecond

// find is has, after a collection if there is no room. A value that exceeds a limit alone is
// refused without a collection.
func (r *room) find(n int64) bool {
	if r.has(n) {
		return true
	}
	for above := r; above != nil; above = above.above {
		if above.limit > 0 && n > above.limit {
			return false
		}
	}
	collected := make(chan struct{})
	runtime.AddCleanup(new([largeText]byte), func(done chan struct{}) { close(done) }, collected)
	runtime.GC()
	timer := time.NewTimer(collectTime)
	defer timer.Stop()
	select { // cleanups run in other goroutines, in no certain order
	case <-collected:
	case <-timer.C:
	}
	for end := time.Now().Add(collectTime / 10); !r.has(n) && time.Now().Before(end); {
		runtime.Gosched()
	}
	return r.has(n)
}

// text counts a text that has just been made and whose bytes nobody else uses.
func (r *room) text(t string) lua.LString {
	if n := int64(len(t)); n >= largeText && r.limited() {
		r.add(n)
		runtime.AddCleanup(unsafe.StringData(t), r.add, -n)
	}
	return lua.LString(t)
}

// table counts the array of a table, without the texts in it.
func (r *room) table(t *lua.LTable, entries int) {
	if n := int64(entries) * arrayEntry; n >= largeText && r.limited() {
		r.add(n)
		runtime.AddCleanup(t, r.add, -n)
	}
}

// arrayEntry is the memory of an entry of an array: the value, the box of a number or a text, and
// the space that the array grows ahead.
const arrayEntry = 40

// budget is what a script may use: time by the leash, memory by the room.
type budget struct {
	leash *leash
	room  *room
}

// reserve raises an error if there is no room for so many bytes.
func (b budget) reserve(l *lua.LState, size float64) {
	if size >= largeText && (size > 1<<62 || !b.room.find(int64(size))) {
		l.RaiseError("not enough memory")
	}
}

// reserveEntries is reserve for an array that grows entry by entry. It looks once in a thousand
// entries.
func (b budget) reserveEntries(l *lua.LState, entries int) {
	const lookEvery = 1 << 10
	if entries%lookEvery == 0 {
		b.reserve(l, float64(entries)*arrayEntry)
	}
}

// keysRoom returns what a search for keys asks for memory. Each key exists twice: in the list, and
// as a text.
func (b budget) keysRoom() keymatch.Memory {
	size := int64(0)
	return func(bytes int) error {
		if size += 2 * int64(bytes); !b.room.find(size) {
			return errMemory
		}
		return nil
	}
}

// stillRoom reports whether there is room left, and stops the script if not. The caller must hold
// no lock of a record.
func (b budget) stillRoom() bool {
	if b.room.find(0) {
		return true
	}
	b.leash.pull(errMemory)
	return false
}

// allow raises an error if a text of so many bytes is too long or finds no room.
func (b budget) allow(l *lua.LState, size float64) {
	if size > maxText {
		l.RaiseError("not enough memory")
	}
	b.reserve(l, size)
}

// maxText is the length of the longest text that a library function makes.
const maxText = 1 << 30

// pushBuilt pushes a text without a copy. Nobody may change out afterwards.
func (b budget) pushBuilt(l *lua.LState, out []byte) int {
	return b.pushNew(l, unsafe.String(unsafe.SliceData(out), len(out)))
}

// appendText appends a text. A large text is copied in pieces, so that the process can be stopped
// meanwhile.
func appendText(out []byte, t string) []byte {
	if cap(out)-len(out) < len(t) && len(t) > largeText {
		out = pieces.Grow(out, max(len(out), len(t)))
	}
	return pieces.Append(out, bytesOf(t))
}

// pushNew pushes a text that has just been made.
func (b budget) pushNew(l *lua.LState, t string) int {
	l.Push(b.room.text(t))
	return 1
}

// bytesOf returns the bytes of a text without a copy. Nobody may change them.
func bytesOf(t string) []byte { return unsafe.Slice(unsafe.StringData(t), len(t)) }
