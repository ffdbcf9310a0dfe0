package keymatch

import "fmt"

// regexOp is the kind of a node of a parsed expression.
type regexOp int

const (
	regexEmpty     regexOp = iota // matches the empty string
	regexSet                      // one byte of set
	regexConcat                   // all of subs, one after the other
	regexAlternate                // one of subs
	regexRepeat                   // subs[0], min to max times
	regexGroup                    // subs[0], remembered as group n
	regexBackref                  // what group n matched
	regexAnchor                   // a place: anchor
)

// regexNode is a node of a parsed expression.
type regexNode struct {
	op       regexOp
	subs     []*regexNode
	set      byteSet
	min, max int // max is unbounded for no bound
	n        int // number of the group, from 1
	anchor   byte
	depth    int // of the tree below
}

const (
	unbounded      = -1
	maxRepetitions = 32767
	maxBackref     = 9
)

// Anchors: the letter of the escape, ^ and $ for both ends.
const (
	atBegin      = '^'
	atEnd        = '$'
	atWordBegin  = '<'
	atWordEnd    = '>'
	atWordEdge   = 'b'
	atNoWordEdge = 'B'
)

func newRegexNode(op regexOp, subs ...*regexNode) *regexNode {
	n := &regexNode{op: op, subs: subs}
	for _, sub := range subs {
		n.depth = max(n.depth, sub.depth+1)
	}
	return n
}

func setNode(set byteSet) *regexNode {
	n := newRegexNode(regexSet)
	n.set = set
	return n
}

func anchorNode(anchor byte) *regexNode {
	n := newRegexNode(regexAnchor)
	n.anchor = anchor
	return n
}

// size returns the number of positions with all repetitions written out, saturated above maxLinearSize.
func (n *regexNode) size() int {
	size := 1
	for _, sub := range n.subs {
		size += sub.size()
	}
	if n.op == regexRepeat {
		size *= max(n.min, n.max, 1)
	}
	return min(size, maxLinearSize+1)
}

// appendSource appends the expression in the syntax of package regexp; ok is false where that lacks something.
func (n *regexNode) appendSource(dst []byte) (_ []byte, ok bool) {
	switch n.op {
	case regexSet:
		return n.set.appendSource(dst), true
	case regexBackref:
		return nil, false
	case regexAnchor:
		return appendAnchor(dst, n.anchor)
	}
	dst = append(dst, "(?:"...)
	for i, sub := range n.subs {
		if i > 0 && n.op == regexAlternate {
			dst = append(dst, '|')
		}
		if dst, ok = sub.appendSource(dst); !ok {
			return nil, false
		}
	}
	dst = append(dst, ')')
	switch {
	case n.op == regexRepeat && n.max == unbounded:
		dst = fmt.Appendf(dst, "{%d,}", n.min)
	case n.op == regexRepeat:
		dst = fmt.Appendf(dst, "{%d,%d}", n.min, n.max)
	}
	return dst, true
}

func appendAnchor(dst []byte, anchor byte) (_ []byte, ok bool) {
	switch anchor {
	case atBegin:
		return append(dst, `\A`...), true
	case atEnd:
		return append(dst, `\z`...), true
	case atWordEdge, atNoWordEdge:
		return append(dst, '\\', anchor), true
	}
	return nil, false
}
