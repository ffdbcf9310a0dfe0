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

// room counts the large texts and tables that functions of ours have made: before they are made a script is refused those for which there
// is no room. Between two instructions one such function can take more memory than there is, so it would be too late to measure the
// interpreter afterwards, as memory does.
//
// What is made counts until Go's collector has found that nobody has it any more. The collector is started when that may help.
type room struct {
	limit int64        // bytes; 0: any number
	taken atomic.Int64 // bytes of what has been made and not been collected
	above *room        // of the whole pool; nil: none
}

// largeText is the size from which on a text counts.
const largeText = 4 << 10

// has reports whether there is room for so many bytes more.
func (r *room) has(n int64) bool {
	for ; r != nil; r = r.above {
		if r.limit > 0 && n > r.limit-r.taken.Load() {
			return false
		}
	}
	return true
}

// add counts bytes, or with a negative number gives them back.
func (r *room) add(n int64) {
	for ; r != nil; r = r.above {
		r.taken.Add(n)
	}
}

// limited reports whether anything is to be counted.
func (r *room) limited() bool { return r.limit > 0 || r.above != nil && r.above.limit > 0 }

// collectTime is how long a collection's effect is waited for.
const collectTime = 100 * time.Millisecond

// find is has, after a collection where that is needed. A text that is over the limit by itself needs none.
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
	select { // what gives room back runs beside this, in no certain order
	case <-collected:
	case <-timer.C:
	}
	for end := time.Now().Add(collectTime / 10); !r.has(n) && time.Now().Before(end); {
		runtime.Gosched()
	}
	return r.has(n)
}

// text counts a text that has just been made, and whose bytes nobody else has.
func (r *room) text(t string) lua.LString {
	if n := int64(len(t)); n >= largeText && r.limited() {
		r.add(n)
		runtime.AddCleanup(unsafe.StringData(t), r.add, -n)
	}
	return lua.LString(t)
}

// table counts a table with so many entries of the array part, beside the texts in it.
func (r *room) table(t *lua.LTable, entries int) {
	if n := int64(entries) * arrayEntry; n >= largeText && r.limited() {
		r.add(n)
		runtime.AddCleanup(t, r.add, -n)
	}
}

// arrayEntry is what an entry of an array takes: the value, the box of a number or a text, and what the array grows ahead.
const arrayEntry = 40

// budget is what a script may use: its time by the leash, its memory by the room.
type budget struct {
	leash *leash
	room  *room
}

// reserve ends the script when there is no room for so many bytes.
func (b budget) reserve(l *lua.LState, size float64) {
	if size >= largeText && (size > 1<<62 || !b.room.find(int64(size))) {
		l.RaiseError("not enough memory")
	}
}

// reserveEntries is reserve for an array that grows; it looks once for so many entries.
func (b budget) reserveEntries(l *lua.LState, entries int) {
	const lookEvery = 1 << 10
	if entries%lookEvery == 0 {
		b.reserve(l, float64(entries)*arrayEntry)
	}
}

// keysRoom is asked for the memory of keys that are found: they are there twice, in the list and as texts.
func (b budget) keysRoom() keymatch.Memory {
	size := int64(0)
	return func(bytes int) error {
		if size += 2 * int64(bytes); !b.room.find(size) {
			return errMemory
		}
		return nil
	}
}

// stillRoom stops the script when it has kept more of what it has been shown than there is room for. No record may be locked.
func (b budget) stillRoom() bool {
	if b.room.find(0) {
		return true
	}
	b.leash.pull(errMemory)
	return false
}

// allow ends the script when a text of so many bytes would be more than it may have.
func (b budget) allow(l *lua.LState, size float64) {
	if size > maxText {
		l.RaiseError("not enough memory")
	}
	b.reserve(l, size)
}

// maxText is the longest text that a library function makes.
const maxText = 1 << 30

// pushBuilt pushes a text that nobody changes any more, without another copy of it.
func (b budget) pushBuilt(l *lua.LState, out []byte) int {
	return b.pushNew(l, unsafe.String(unsafe.SliceData(out), len(out)))
}

// appendText appends a text, which may be large: the process can be stopped meanwhile.
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
