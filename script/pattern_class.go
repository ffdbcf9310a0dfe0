package script

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

// setEnd returns the end of a set, p being behind its bracket. A bracket that closes at once is a member.
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

// single tells whether the byte at s belongs to the class from p to next.
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

// inSet tells whether c belongs to the set whose brackets are at p and end.
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

// inClass tells whether c belongs to the class of a letter; a capital one is the opposite, and what is no class is itself.
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
