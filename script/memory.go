package script

import (
	"runtime/metrics"

	lua "github.com/yuin/gopher-lua"
)

// memory limits what a state can hold on to: tables, texts and functions that its global variables, the variables of the
// functions being called and its coroutines lead to. The interpreter does not count what it takes, so now and then the server
// looks how much its own heap has grown, and only when that is a good part of the limit it measures the state.
//
// Not counted: values between two instructions, and garbage that the collector has not met.
type memory struct {
	l     *lua.LState
	limit int64

	ticks    uint32
	heap     [1]metrics.Sample
	measured uint64 // the heap when the state was measured last
}

const (
	ticksPerLook = 1 << 13 // instructions between looks at the heap
	heapBytes    = "/memory/classes/heap/objects:bytes"

	tableBytes = 150 // of an empty table, about
	entryBytes = 60  // of an entry
	valueBytes = 24  // of a text or function beside its contents

	threadBytes = 28 << 10 // of a coroutine that has just been made: its stacks
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

// tick is called before each instruction.
func (m *memory) tick(h *leash) {
	if m.ticks++; m.ticks%ticksPerLook != 0 {
		return
	}
	heap := m.heapSize()
	if heap < m.measured { // collected
		m.measured = heap
	}
	if heap-m.measured < uint64(m.limit)/4 {
		return
	}
	m.measured = heap
	if m.size() > m.limit {
		h.pull(errMemory)
	}
}

// size measures what the state holds on to; over the limit it stops counting.
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

// weigher walks over values that lead to each other.
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

// frames adds the variables of the functions that are being called.
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
