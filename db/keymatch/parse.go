package keymatch

import (
	"gotycoon/db/dberr"
	"strings"
)

// regexParser reads an expression from the left. Its rules are those of the GNU C library, found by
// asking it.
type regexParser struct {
	rest   string
	groups int    // opened so far
	closed uint16 // groups that a back-reference may name: bit n for group n
}

func parseRegex(pattern string) (*regexNode, error) {
	p := &regexParser{rest: pattern}
	root, err := p.alternatives(0)
	if err != nil {
		return nil, err
	}
	return root, nil
}

// peek returns the next byte, and at the end NUL, which is not in a pattern.
func (p *regexParser) peek() byte {
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

// accept skips the next byte if it is c.
func (p *regexParser) accept(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// alternatives reads up to the end of the group, or of the pattern where nest is 0. Empty ones are
// legal. An alternative cannot refer to the groups of another one, but what follows can.
func (p *regexParser) alternatives(nest int) (*regexNode, error) {
	var branches []*regexNode
	before, after := p.closed, p.closed
	for {
		p.closed = before
		branch, err := p.branch(nest)
		if err != nil {
			return nil, err
		}
		branches = append(branches, branch)
		after |= p.closed
		if !p.accept('|') {
			break
		}
	}
	p.closed = after
	return joined(regexAlternate, branches), nil
}

func (p *regexParser) branch(nest int) (*regexNode, error) {
	var parts []*regexNode
	for p.rest != "" && p.peek() != '|' && (p.peek() != ')' || nest == 0) {
		part, err := p.part(nest)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return joined(regexConcat, parts), nil
}

// joined returns the only one of subs, or a node of all.
func joined(op regexOp, subs []*regexNode) *regexNode {
	switch len(subs) {
	case 0:
		return newRegexNode(regexEmpty)
	case 1:
		return subs[0]
	}
	return newRegexNode(op, subs...)
}

// part reads one item with its repetitions. An anchor cannot be repeated, and nothing can be in
// front of it.
func (p *regexParser) part(nest int) (*regexNode, error) {
	n, err := p.item(nest)
	for err == nil && n.depth <= maxRegexDepth && strings.IndexByte("*+?{", p.peek()) >= 0 {
		if n.op == regexAnchor {
			return nil, dberr.ErrRegex
		}
		n, err = p.repeated(n)
	}
	if err != nil || n.depth > maxRegexDepth {
		return nil, dberr.ErrRegex
	}
	return n, nil
}

func (p *regexParser) item(nest int) (*regexNode, error) {
	c := p.peek()
	p.rest = p.rest[1:]
	switch c {
	case '(':
		return p.group(nest + 1)
	case '[':
		return p.bracket()
	case '.':
		return setNode(byteSet{}.inverted()), nil
	case '*', '+', '?', '{':
		return nil, dberr.ErrRegex
	case '^', '$':
		return anchorNode(c), nil
	case '\\':
		return p.escape()
	}
	return literal(c), nil
}

func literal(c byte) *regexNode {
	var set byteSet
	set.add(c)
	return setNode(set)
}

// group reads a group whose parenthesis has been read.
func (p *regexParser) group(nest int) (*regexNode, error) {
	if nest > maxRegexDepth {
		return nil, dberr.ErrRegex
	}
	p.groups++
	number := p.groups
	sub, err := p.alternatives(nest)
	if err != nil || !p.accept(')') {
		return nil, dberr.ErrRegex
	}
	if number <= maxBackref {
		p.closed |= 1 << number
	}
	n := newRegexNode(regexGroup, sub)
	n.n = number
	return n, nil
}

// escape reads what follows a backslash. Letters without a meaning stand for themselves.
func (p *regexParser) escape() (*regexNode, error) {
	if p.rest == "" {
		return nil, dberr.ErrRegex
	}
	c := p.peek()
	p.rest = p.rest[1:]
	switch c {
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		n := newRegexNode(regexBackref)
		if n.n = int(c - '0'); p.closed>>n.n&1 == 0 {
			return nil, dberr.ErrRegex
		}
		return n, nil
	case '`':
		return anchorNode(atBegin), nil
	case '\'':
		return anchorNode(atEnd), nil
	case atWordBegin, atWordEnd, atWordEdge, atNoWordEdge:
		return anchorNode(c), nil
	case 'w', 'W', 's', 'S':
		return setNode(escapedClass(c)), nil
	}
	return literal(c), nil
}

// repeated reads one repetition of n. None at all matches the empty string, but the group keeps its
// number.
func (p *regexParser) repeated(n *regexNode) (*regexNode, error) {
	r := newRegexNode(regexRepeat, n)
	r.max = unbounded
	c := p.peek()
	p.rest = p.rest[1:]
	switch c {
	case '+':
		r.min = 1
	case '?':
		r.max = 1
	case '{':
		if !p.bounds(r) {
			return nil, dberr.ErrRegex
		}
	}
	if r.max == 0 {
		r.op, r.subs, r.depth = regexEmpty, nil, 0
	}
	return r, nil
}

// bounds reads {m}, {m,}, {m,n} or {,n} behind the brace.
func (p *regexParser) bounds(r *regexNode) bool {
	least, given := p.bound()
	if !given && p.peek() != ',' {
		return false
	}
	most := least
	if p.accept(',') {
		if most, given = p.bound(); !given {
			most = unbounded
		}
	}
	r.min, r.max = least, most
	return p.accept('}') && (most == unbounded || least <= most) && max(least, most) <= maxRepetitions
}

// bound reads a number, saturated above maxRepetitions.
func (p *regexParser) bound() (n int, given bool) {
	for ; p.rest != "" && isNumeral(p.rest[0]); p.rest = p.rest[1:] {
		n, given = min(n*10+int(p.rest[0]-'0'), maxRepetitions+1), true
	}
	return n, given
}

func isNumeral(c byte) bool { return '0' <= c && c <= '9' }
