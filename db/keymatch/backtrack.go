package keymatch

import (
	"bytes"
	"gotycoon/db/owed"
)

// Budget of a backtracker. Expressions that need one can take time exponential in the length of the key: such keys
// do not match, and after a few of them none does any more. The original would not come back.
const (
	keySteps     = 1 << 20 // for one key, and
	byteSteps    = 1 << 4  // for each of its bytes
	maxCallDepth = 1 << 17 // steps inside each other; one takes a few hundred bytes of stack
	maxOverruns  = 8       // keys beyond their budget
	cheapBytes   = 16      // bytes looked at for the price of a step
	equalBytes   = 256     // bytes compared with those of a group for that price
	stepWork     = 8       // what a step costs in those of a Heeding
)

// backtracker tries an expression path by path. It knows everything that the parser does.
type backtracker struct {
	heeding  *owed.Heeding
	run      step
	overruns int

	// State while a key is tried.
	key    []byte
	groups []span
	loops  []loop
	left   int // steps
	end    int // of the match
	depth  int
}

// step tries to match from a position on, with all that follows in the expression.
type step func(at int) bool

// span is what a group matched; end is before begin where it has not.
type span struct{ begin, end int }

// loop is the state of a repetition: iterations begun, and where the last one began.
type loop struct{ count, at int }

func newBacktracker(h *owed.Heeding, root *regexNode) *backtracker {
	b := &backtracker{heeding: h, groups: make([]span, maxBackref+1)}
	b.run = b.compile(root, func(at int) bool {
		b.end = at
		return true
	})
	return b
}

func (b *backtracker) match(key []byte) bool {
	b.key, b.left, b.depth = key, keySteps+byteSteps*len(key), 0
	for at := 0; at <= len(key) && b.left > 0 && b.overruns < maxOverruns; at++ {
		for i := range b.groups {
			b.groups[i] = span{0, -1}
		}
		if !b.pay(0, stepWork) {
			break
		}
		if b.run(at) {
			return true
		}
	}
	if b.left <= 0 && b.heeding.Err() == nil {
		b.overruns++
	}
	return false
}

// pay takes steps from the budget and counts work. It reports whether there is still something left of the budget: nothing is where the
// work has to end.
func (b *backtracker) pay(steps, work int) bool {
	b.left -= steps
	if !b.heeding.Work(work) {
		b.left = 0
	}
	return b.left > 0
}

// call counts a step and takes it. It fails when the budget is used up.
func (b *backtracker) call(next step, at int) bool {
	b.pay(1, stepWork)
	b.depth++
	if b.depth > maxCallDepth {
		b.left = 0
	}
	matched := b.left > 0 && next(at)
	b.depth--
	return matched
}

// compile returns the step that matches n and then goes on with next.
func (b *backtracker) compile(n *regexNode, next step) step {
	switch n.op {
	case regexSet:
		return func(at int) bool { return at < len(b.key) && n.set.has(b.key[at]) && b.call(next, at+1) }
	case regexConcat:
		for i := len(n.subs) - 1; i >= 0; i-- {
			next = b.compile(n.subs[i], next)
		}
	case regexAlternate:
		return b.compileAlternate(n, next)
	case regexRepeat:
		if n.subs[0].op == regexSet {
			return b.compileRun(n, next)
		}
		return b.compileRepeat(n, next)
	case regexGroup:
		return b.compileGroup(n, next)
	case regexBackref:
		return func(at int) bool {
			group := b.groups[n.n]
			if group.end < group.begin {
				return false
			}
			size := group.end - group.begin
			b.pay(size/equalBytes, size/cheapBytes)
			return bytes.HasPrefix(b.key[at:], b.key[group.begin:group.end]) && b.call(next, at+size)
		}
	case regexAnchor:
		return func(at int) bool { return b.standsAt(n.anchor, at) && b.call(next, at) }
	}
	return next
}

func (b *backtracker) compileAlternate(n *regexNode, next step) step {
	var steps []step
	for _, sub := range n.subs {
		steps = append(steps, b.compile(sub, next))
	}
	return func(at int) bool {
		for _, try := range steps {
			if b.call(try, at) {
				return true
			}
		}
		return false
	}
}

// compileRun is compileRepeat for single bytes: no call for each of them.
func (b *backtracker) compileRun(n *regexNode, next step) step {
	set := &n.subs[0].set
	return func(at int) bool {
		end := at
		for end < len(b.key) && (n.max == unbounded || end-at < n.max) && set.has(b.key[end]) {
			end++
		}
		b.pay((end-at)/cheapBytes, end-at)
		for ; end-at >= n.min; end-- {
			if b.call(next, end) {
				return true
			}
		}
		return false
	}
}

func (b *backtracker) compileRepeat(n *regexNode, next step) step {
	id := len(b.loops)
	b.loops = append(b.loops, loop{})
	var body step
	again := func(at int) bool {
		state := b.loops[id]
		if state.at == at { // an empty iteration: any number of them is possible
			return b.call(next, at)
		}
		if n.max == unbounded || state.count < n.max {
			b.loops[id] = loop{state.count + 1, at}
			if b.call(body, at) {
				return true
			}
			b.loops[id] = state
		}
		return state.count >= n.min && b.call(next, at)
	}
	body = b.compile(n.subs[0], again)
	return func(at int) bool {
		outer := b.loops[id]
		b.loops[id] = loop{0, -1}
		matched := b.call(again, at)
		b.loops[id] = outer
		return matched
	}
}

// compileGroup remembers where the group began and, once it has matched, the span. begins is a stack because a group
// in a repetition begins again before the step after it has returned.
func (b *backtracker) compileGroup(n *regexNode, next step) step {
	if n.n >= len(b.groups) { // nobody can refer to it
		return b.compile(n.subs[0], next)
	}
	group := &b.groups[n.n]
	var begins []int
	sub := b.compile(n.subs[0], func(at int) bool {
		outer, begin := *group, begins[len(begins)-1]
		*group, begins = span{begin, at}, begins[:len(begins)-1]
		if b.call(next, at) {
			return true
		}
		*group, begins = outer, append(begins, begin)
		return false
	})
	return func(at int) bool {
		height := len(begins)
		begins = append(begins, at)
		matched := b.call(sub, at)
		begins = begins[:height]
		return matched
	}
}

// standsAt tells whether a position is a place that the anchor names.
func (b *backtracker) standsAt(anchor byte, at int) bool {
	before := at > 0 && isWord(b.key[at-1])
	after := at < len(b.key) && isWord(b.key[at])
	switch anchor {
	case atBegin:
		return at == 0
	case atEnd:
		return at == len(b.key)
	case atWordBegin:
		return !before && after
	case atWordEnd:
		return before && !after
	case atWordEdge:
		return before != after
	}
	return before == after
}

func isWord(c byte) bool { return c == '_' || isNumeral(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }
