package script

import "strings"

// Patterns of the language: matching with backtracking over bytes, captures, %b and %f.

const (
	maxCaptures  = 32
	maxMatchDeep = 200_000 // matches inside each other; each takes some hundred bytes of stack

	openCapture  = -1
	placeCapture = -2
)

// capture is what a pair of parentheses has matched. length is openCapture until the end is known,
// and placeCapture for "()".
type capture struct{ at, length int }

// matcher matches one pattern with one text, by backtracking.
type matcher struct {
	src, pat string
	raise    func(message string) // raises an error and does not return
	work     func(steps int)      // counts steps; may raise an error
	allow    func(size int)       // checks the length of the result; may raise an error
	depth    int
	level    int
	captures [maxCaptures]capture
}

// comparedAtOnce is how many bytes are compared in the time of one step.
const comparedAtOnce = 16

// noMatch is the end of a match that has failed.
const noMatch = -1

// find looks for the pattern from init on. An anchored pattern can only match at init.
func (m *matcher) find(init int) (begin, end int) {
	p := 0
	anchored := strings.HasPrefix(m.pat, "^")
	if anchored {
		p = 1
	}
	for at := init; at <= len(m.src); at++ {
		m.level = 0
		if end := m.match(at, p); end != noMatch {
			return at, end
		}
		if anchored {
			break
		}
	}
	return noMatch, noMatch
}

// match matches the pattern from p on with the text from s on, and returns the end.
func (m *matcher) match(s, p int) int {
	m.depth++
	if m.depth > maxMatchDeep {
		m.raise("pattern too complex")
	}
	end := m.matchHere(s, p)
	m.depth--
	return end
}

func (m *matcher) matchHere(s, p int) int {
	for p < len(m.pat) {
		m.work(1)
		switch c := m.pat[p]; {
		case c == '(' && p+1 < len(m.pat) && m.pat[p+1] == ')':
			return m.begin(s, p+2, placeCapture)
		case c == '(':
			return m.begin(s, p+1, openCapture)
		case c == ')':
			return m.finish(s, p+1)
		case c == '$' && p+1 == len(m.pat):
			if s == len(m.src) {
				return s
			}
			return noMatch
		case c == '%' && p+1 < len(m.pat) && (m.pat[p+1] == 'b' || m.pat[p+1] == 'f' || isDigit(m.pat[p+1])):
			if s, p = m.special(s, p+1); s == noMatch {
				return noMatch
			}
			continue
		}
		next := m.classEnd(p)
		m.work(next - p)
		if next < len(m.pat) && strings.IndexByte("?*+-", m.pat[next]) >= 0 {
			if m.pat[next] != '?' {
				return m.repeat(s, p, next)
			}
			if m.single(s, p, next) {
				if end := m.match(s+1, next+1); end != noMatch {
					return end
				}
			}
			p = next + 1
			continue
		}
		if !m.single(s, p, next) {
			return noMatch
		}
		s, p = s+1, next
	}
	return s
}

// special matches %b, %f and back references. p is the place of the letter or digit. It returns
// where to go on.
func (m *matcher) special(s, p int) (int, int) {
	switch m.pat[p] {
	case 'b':
		return m.balance(s, p+1), p + 3
	case 'f':
		return m.frontier(s, p+1)
	}
	c := m.captureIndex(int(m.pat[p] - '1'))
	part := m.src[c.at : c.at+c.length]
	m.work(len(part) / comparedAtOnce)
	if !strings.HasPrefix(m.src[s:], part) {
		return noMatch, p
	}
	return s + len(part), p + 1
}

func (m *matcher) captureIndex(i int) capture {
	if i < 0 || i >= m.level || m.captures[i].length == openCapture {
		m.raise("invalid capture index")
	}
	c := m.captures[i]
	if c.length == placeCapture {
		c.length = 0
	}
	return c
}

// balance matches from an opening byte to the byte that closes it.
func (m *matcher) balance(s, p int) int {
	if p+1 >= len(m.pat) {
		m.raise("unbalanced pattern")
	}
	if s >= len(m.src) || m.src[s] != m.pat[p] {
		return noMatch
	}
	opens, closes, depth := m.pat[p], m.pat[p+1], 1
	for at := s + 1; at < len(m.src); at++ {
		m.work(1)
		switch m.src[at] {
		case closes:
			if depth--; depth == 0 {
				return at + 1
			}
		case opens:
			depth++
		}
	}
	return noMatch
}

// frontier matches between a byte outside of a set and a byte in it. In front of the text and
// behind it stands a NUL.
func (m *matcher) frontier(s, p int) (int, int) {
	if p >= len(m.pat) || m.pat[p] != '[' {
		m.raise("missing '[' after '%f' in pattern")
	}
	end := m.classEnd(p)
	var before, after byte
	if s > 0 {
		before = m.src[s-1]
	}
	if s < len(m.src) {
		after = m.src[s]
	}
	if m.inSet(before, p, end-1) || !m.inSet(after, p, end-1) {
		return noMatch, p
	}
	return s, end
}

func (m *matcher) begin(s, p, kind int) int {
	if m.level >= maxCaptures {
		m.raise("too many captures")
	}
	m.captures[m.level] = capture{s, kind}
	m.level++
	end := m.match(s, p)
	if end == noMatch {
		m.level--
	}
	return end
}

func (m *matcher) finish(s, p int) int {
	i := m.level - 1
	for i >= 0 && m.captures[i].length != openCapture {
		i--
	}
	if i < 0 {
		m.raise("invalid pattern capture")
	}
	m.captures[i].length = s - m.captures[i].at
	end := m.match(s, p)
	if end == noMatch {
		m.captures[i].length = openCapture
	}
	return end
}

// repeat matches the single class from p to next with the suffix *, + or -.
func (m *matcher) repeat(s, p, next int) int {
	if m.pat[next] == '-' {
		for {
			if end := m.match(s, next+1); end != noMatch {
				return end
			}
			if !m.single(s, p, next) {
				return noMatch
			}
			m.work(next - p)
			s++
		}
	}
	least := 0
	if m.pat[next] == '+' {
		least = 1
	}
	count := 0
	for m.single(s+count, p, next) {
		m.work(next - p)
		count++
	}
	for ; count >= least; count-- {
		if end := m.match(s+count, next+1); end != noMatch {
			return end
		}
	}
	return noMatch
}

// classEnd returns the end of the single class that begins at p.
func (m *matcher) classEnd(p int) int {
	c := m.pat[p]
	p++
	switch c {
	case '%':
		if p >= len(m.pat) {
			m.raise("malformed pattern (ends with '%')")
		}
		return p + 1
	case '[':
		return m.setEnd(p)
	}
	return p
}

// setEnd returns the end of a set. p is behind its opening bracket. A closing bracket right there
// belongs to the set.
func (m *matcher) setEnd(p int) int {
	if p < len(m.pat) && m.pat[p] == '^' {
		p++
	}
	for first := true; ; first = false {
		if p >= len(m.pat) {
			m.raise("malformed pattern (missing ']')")
		}
		c := m.pat[p]
		p++
		switch {
		case c == ']' && !first:
			return p
		case c == '%' && p < len(m.pat):
			p++
		}
	}
}

// single reports whether the byte at s belongs to the class from p to next.
func (m *matcher) single(s, p, next int) bool {
	if s >= len(m.src) {
		return false
	}
	c := m.src[s]
	switch m.pat[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pat[p+1])
	case '[':
		return m.inSet(c, p, next-1)
	}
	return m.pat[p] == c
}

// inSet reports whether c belongs to the set whose brackets are at p and end.
func (m *matcher) inSet(c byte, p, end int) bool {
	member := true
	p++
	if m.pat[p] == '^' {
		member = false
		p++
	}
	for ; p < end; p++ {
		switch {
		case m.pat[p] == '%' && p+1 < end:
			p++
			if inClass(c, m.pat[p]) {
				return member
			}
		case p+2 < end && m.pat[p+1] == '-':
			if m.pat[p] <= c && c <= m.pat[p+2] {
				return member
			}
			p += 2
		case m.pat[p] == c:
			return member
		}
	}
	return !member
}

// inClass reports whether c belongs to the class of a letter. A capital letter means the opposite
// class; a character that is no class means itself.
func inClass(c, class byte) bool {
	lower := class | 0x20
	var member bool
	switch lower {
	case 'a':
		member = isLetter(c)
	case 'c':
		member = c < ' ' || c == 0x7f
	case 'd':
		member = isDigit(c)
	case 'l':
		member = 'a' <= c && c <= 'z'
	case 'p':
		member = c > ' ' && c < 0x7f && !isLetter(c) && !isDigit(c)
	case 's':
		member = c == ' ' || '\t' <= c && c <= '\r'
	case 'u':
		member = 'A' <= c && c <= 'Z'
	case 'w':
		member = isLetter(c) || isDigit(c)
	case 'x':
		member = isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f'
	case 'z':
		member = c == 0
	default:
		return class == c
	}
	if !isLetter(class) {
		return class == c
	}
	return member == (class == lower)
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
