package keymatch

import (
	"gotycoon/db/owed"
	"slices"
	"strings"
	"unicode/utf8"
)

// Regex is a POSIX extended regular expression in the dialect of MatchRegex. It belongs to one goroutine.
type Regex struct {
	match   func(key []byte) bool
	heeding *owed.Heeding
	search  *backtracker // tells where; nil: the places come from find
	find    func(text []byte, at int) []int
}

// CompileRegex compiles an expression, up to its first NUL. It returns ErrRegex for a bad one. An error of heed ends each use of the
// expression: see Err.
func Compile(heed owed.Heed, pattern string) (*Regex, error) {
	pattern, _, _ = strings.Cut(pattern, "\x00")
	h := owed.NewHeeding(heed)
	match, err := Matcher(h, pattern)
	if err != nil {
		return nil, err
	}
	root, err := parseRegex(pattern)
	if err != nil {
		return nil, err
	}
	r := &Regex{heeding: h, match: match}
	re := linear(root)
	if re == nil {
		r.search = newBacktracker(h, root)
		return r, nil
	}
	if root.has(regexGroup) { // the linear one does not tell them
		r.search = newBacktracker(h, root)
		return r, nil
	}
	re.Longest()
	placeless := !root.has(regexAnchor)
	r.find = func(text []byte, at int) []int {
		if at > 0 && !placeless { // what stands before counts
			return findBehind(newBacktracker(h, root), text, at)
		}
		if size := root.size(); (len(text)-at)*size > wholeWork {
			return moved(re.FindReaderSubmatchIndex(&heedingReader{heeding: h, text: text[at:], size: size}), at)
		}
		wide, narrow := widen(text[at:])
		places := narrowAll(re.FindSubmatchIndex(wide), narrow)
		return moved(places, at)
	}
	return r, nil
}

// moved adds at to the places.
func moved(places []int, at int) []int {
	for i := range places {
		if places[i] >= 0 {
			places[i] += at
		}
	}
	return places
}

// Err returns why the work had to end; what has been found then means nothing.
func (r *Regex) Err() error { return r.heeding.Err() }

// has tells whether there is a node of a kind in the expression.
func (n *regexNode) has(op regexOp) bool {
	return n.op == op || slices.ContainsFunc(n.subs, func(sub *regexNode) bool { return sub.has(op) })
}

// Match tells whether the expression matches somewhere in text.
func (r *Regex) Match(text []byte) bool { return r.match(text) }

// Find returns where the expression first matches from a position on: begin and end of the match, then of each group, -1 for a
// group that has no part in it; nil where it does not match.
func (r *Regex) Find(text []byte, at int) []int {
	if r.search != nil {
		return findBehind(r.search, text, at)
	}
	return r.find(text, at)
}

// findBehind finds with a backtracker.
func findBehind(b *backtracker, text []byte, at int) []int {
	begin, end := -1, -1
	run := b.run
	b.key, b.left, b.depth = text, keySteps+byteSteps*len(text), 0
	for ; at <= len(text) && b.pay(0, stepWork); at++ {
		for i := range b.groups {
			b.groups[i] = span{0, -1}
		}
		b.end = -1
		if run(at) {
			begin, end = at, b.end
			break
		}
	}
	if begin < 0 {
		return nil
	}
	places := []int{begin, end}
	for _, g := range b.groups[1:] {
		if g.end < g.begin {
			g = span{-1, -1}
		}
		places = append(places, g.begin, g.end)
	}
	return places
}

// widen writes each byte as the character of that number. narrow gives the position of a byte for one of a character; nil: the
// same.
func widen(text []byte) (wide []byte, narrow []int) {
	if isASCII(text) {
		return text, nil
	}
	for i, c := range text {
		for range utf8.RuneLen(rune(c)) {
			narrow = append(narrow, i)
		}
		wide = utf8.AppendRune(wide, rune(c))
	}
	return wide, append(narrow, len(text))
}

func narrowAll(places, narrow []int) []int {
	if narrow == nil {
		return places
	}
	for i, place := range places {
		if place >= 0 {
			places[i] = narrow[place]
		}
	}
	return places
}
