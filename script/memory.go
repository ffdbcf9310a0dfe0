package script

import (
	"runtime/metrics"

	lua "github.com/yuin/gopher-lua"
)

// memory limits what an interpreter can hold on to: the tables, texts and functions that it reaches
// from its global variables, from the variables of running functions, and from its coroutines.
//
// The library does not count its memory, and a walk over all values is slow. So memory reads now
// and then how large the heap of the whole server is, which is cheap. Only when the heap has grown
// by a quarter of the limit since the last walk does memory walk over the values and add them up.
// Example: the limit is 64 MiB. After each 16 MiB that the server's heap has grown, whoever caused
// the growth, the interpreter that runs is weighed; a script that keeps nothing goes on.
//
// Values that exist only between two instructions, and garbage that is not collected yet, do not
// count. A text counts each time that something refers to it.
type memory struct {
	l     *lua.LState
	limit int64

	ticks    uint32
	heap     [1]metrics.Sample
	measured uint64 // the heap at the last walk, or the smallest heap that was seen since then
}

const (
	ticksPerLook = 1 << 13 // instructions between looks at the heap
	heapBytes    = "/memory/classes/heap/objects:bytes"

	tableBytes = 150 // of an empty table, about
	entryBytes = 60  // of an entry
	valueBytes = 24  // of a text or function without its contents

	threadBytes = 28 << 10 // of a new coroutine: its stacks
)

func newMemory(l *lua.LState, limit int64) *memory {
	m := &memory{l: l, limit: limit}
	m.heap[0].Name = heapBytes
	return m
}

func (m *memory) heapSize() uint64 {
	metrics.Read(m.heap[:])
	return m.heap[0].Value.Uint64()
}

func (m *memory) begin() { m.measured = m.heapSize() }

// tick is called before each instruction. It reports whether the interpreter holds on to more than
// it may.
func (m *memory) tick() (exceeded bool) {
	if m.ticks++; m.ticks%ticksPerLook != 0 {
		return false
	}
	heap := m.heapSize()
	if heap < m.measured { // garbage has been collected
		m.measured = heap
	}
	if heap-m.measured < uint64(m.limit)/4 {
		return false
	}
	m.measured = heap
	return m.size() > m.limit
}

// size returns how many bytes the interpreter holds on to. Above the limit it stops counting.
func (m *memory) size() int64 {
	w := &weigher{seen: map[any]bool{}, limit: m.limit}
	w.add(m.l.Get(lua.GlobalsIndex))
	w.add(m.l.Get(lua.RegistryIndex))
	w.frames(m.l)
	for len(w.queue) > 0 && w.size <= w.limit {
		v := w.queue[len(w.queue)-1]
		w.queue = w.queue[:len(w.queue)-1]
		w.open(v)
	}
	return w.size
}

// weigher adds up values and the values that they refer to.
type weigher struct {
	seen        map[any]bool
	queue       []lua.LValue
	size, limit int64
}

func (w *weigher) add(v lua.LValue) {
	switch v := v.(type) {
	case lua.LString:
		w.size += int64(len(v)) + valueBytes
	case *lua.LTable, *lua.LFunction, *lua.LState, *lua.LUserData:
		if !w.seen[v] {
			w.seen[v] = true
			w.queue = append(w.queue, v)
		}
	}
}

func (w *weigher) open(v lua.LValue) {
	switch v := v.(type) {
	case *lua.LTable:
		w.size += tableBytes
		w.add(v.Metatable)
		v.ForEach(func(key, value lua.LValue) {
			w.size += entryBytes
			w.add(key)
			w.add(value)
		})
	case *lua.LFunction:
		w.size += valueBytes
		w.add(v.Env)
		for _, up := range v.Upvalues {
			if up != nil {
				w.add(up.Value())
			}
		}
	case *lua.LUserData:
		w.add(v.Metatable)
	case *lua.LState:
		w.size += threadBytes
		w.frames(v)
	}
}

// frames adds the variables of running functions.
func (w *weigher) frames(l *lua.LState) {
	for level := 0; w.size <= w.limit; level++ {
		frame, ok := l.GetStack(level)
		if !ok {
			return
		}
		for i := 1; ; i++ {
			name, value := l.GetLocal(frame, i)
			if name == "" {
				break
			}
			w.add(value)
		}
	}
}
