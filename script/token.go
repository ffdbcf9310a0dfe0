package script

import "strings"

// nextToken returns the token, the comment or the blanks at the beginning of a text that is not
// empty:
//
//	blanks     any of cSpace, as many as there are
//	comment    -- to the end of the line, or --[==[ to ]==] with any number of =
//	name       a letter or _, then letters, digits and _
//	number     5  .5  5.5e-3  0x1F, and malformed ones such as 3x and 1..2 as a whole
//	string     "text"  'text'  [==[text]==]
//	operator   .. ... :: == ~= <= >=, any other character alone
//
// A string or comment that is not closed goes on to the end of the text, where the parser refuses
// the chunk. The time is linear in the length of the token: nothing stops these loops, and a chunk
// may be as large as the memory of a call.
func nextToken(text string) string {
	switch c := text[0]; {
	case strings.IndexByte(cSpace, c) >= 0:
		return text[:len(text)-len(strings.TrimLeft(text, cSpace))]
	case isWord(c) && !isDigit(c):
		return text[:wordEnd(text, 1)]
	case c == '"' || c == '\'':
		return text[:quotedEnd(text, c)]
	case isNumber(text):
		return text[:numberEnd(text)]
	case strings.HasPrefix(text, "--"):
		if end := longEnd(text, len("--")); end > 0 {
			return text[:end]
		}
		if end := strings.IndexAny(text, "\r\n"); end >= 0 {
			return text[:end]
		}
		return text
	case c == '[':
		return text[:max(longEnd(text, 0), 1)]
	}
	for _, operator := range [...]string{"...", "..", "::", "==", "~=", "<=", ">="} {
		if strings.HasPrefix(text, operator) {
			return operator
		}
	}
	return text[:1]
}

// wordEnd returns the end of the letters, digits and _ that begin at a place.
func wordEnd(text string, at int) int {
	for at < len(text) && isWord(text[at]) {
		at++
	}
	return at
}

func isWord(c byte) bool { return c == '_' || isLetter(c) || isDigit(c) }

// isNumber reports whether a text begins with a number, maybe a malformed one.
func isNumber(text string) bool {
	return isDigit(text[0]) || text[0] == '.' && len(text) > 1 && isDigit(text[1])
}

func numberEnd(text string) int {
	at := 1
	for at < len(text) && (isDigit(text[at]) || text[at] == '.') {
		at++
	}
	if at+1 < len(text) && text[at]|0x20 == 'e' && (text[at+1] == '+' || text[at+1] == '-') {
		at += len("e+")
	}
	return wordEnd(text, at)
}

func quotedEnd(text string, quote byte) int {
	for at := 1; at < len(text); at++ {
		switch text[at] {
		case quote:
			return at + 1
		case '\\':
			at++
		}
	}
	return len(text)
}

// longEnd returns the end of what is between long brackets, such as [==[ and ]==], of which the
// first begins at a place; 0: none begins there.
func longEnd(text string, at int) int {
	if at >= len(text) || text[at] != '[' {
		return 0
	}
	open := at + 1
	for open < len(text) && text[open] == '=' {
		open++
	}
	if open == len(text) || text[open] != '[' {
		return 0
	}
	closing := "]" + text[at+1:open] + "]"
	if end := strings.Index(text[open:], closing); end >= 0 {
		return open + end + len(closing)
	}
	return len(text)
}
