package keymatch

import (
	"gotycoon/db/dberr"
	"strings"
)

// bracket reads a bracket expression whose [ has been read.
func (p *regexParser) bracket() (*regexNode, error) {
	inverted := p.accept('^')
	var set byteSet
	for first := true; first || p.peek() != ']'; first = false {
		if !p.member(&set, first) {
			return nil, dberr.ErrRegex
		}
	}
	p.accept(']')
	if inverted {
		set = set.inverted()
	}
	return setNode(set), nil
}

// member reads a character, a range or a class into set. Only as the first or last member, and as the end of a
// range, - stands for itself.
func (p *regexParser) member(set *byteSet, first bool) bool {
	if !first && p.peek() == '-' && !strings.HasPrefix(p.rest, "-]") {
		return false
	}
	from, class, ok := p.element()
	if !ok {
		return false
	}
	if class != nil {
		set.addSet(*class)
		return true
	}
	if p.peek() != '-' || strings.HasPrefix(p.rest, "-]") {
		set.add(from)
		return true
	}
	p.rest = p.rest[1:]
	to, class, ok := p.element()
	if !ok || class != nil || from > to {
		return false
	}
	set.addRange(from, to)
	return true
}

// element reads one character, also in the form [.c.], or a class: [:name:] or [=c=].
func (p *regexParser) element() (c byte, class *byteSet, ok bool) {
	if p.rest == "" {
		return 0, nil, false
	}
	c = p.rest[0]
	if c != '[' || len(p.rest) < 2 || strings.IndexByte(".=:", p.rest[1]) < 0 {
		p.rest = p.rest[1:]
		return c, nil, true
	}
	kind := p.rest[1]
	name, rest, ok := strings.Cut(p.rest[2:], string(kind)+"]")
	if !ok {
		return 0, nil, false
	}
	p.rest = rest
	if kind == ':' {
		set, ok := namedClass(name)
		return 0, &set, ok
	}
	if len(name) != 1 {
		return 0, nil, false
	}
	if kind == '=' {
		set := literal(name[0]).set
		return 0, &set, true
	}
	return name[0], nil, true
}

// namedClass returns a character class of the C locale.
func namedClass(name string) (set byteSet, ok bool) {
	ranges := ""
	switch name {
	case "alpha":
		ranges = "AZaz"
	case "digit":
		ranges = "09"
	case "alnum":
		ranges = "09AZaz"
	case "upper":
		ranges = "AZ"
	case "lower":
		ranges = "az"
	case "xdigit":
		ranges = "09AFaf"
	case "space":
		ranges = "\t\r  "
	case "blank":
		ranges = "\t\t  "
	case "cntrl":
		ranges = "\x00\x1f\x7f\x7f"
	case "print":
		ranges = " ~"
	case "graph":
		ranges = "!~"
	case "punct":
		ranges = "!/:@[`{~"
	}
	for i := 0; i < len(ranges); i += 2 {
		set.addRange(ranges[i], ranges[i+1])
	}
	return set, ranges != ""
}

// escapedClass returns the class that \w, \W, \s or \S stand for.
func escapedClass(letter byte) byteSet {
	name := "space"
	if letter|0x20 == 'w' {
		name = "alnum"
	}
	set, _ := namedClass(name)
	if name == "alnum" {
		set.add('_')
	}
	if letter&0x20 == 0 {
		return set.inverted()
	}
	return set
}
