package script

import (
	"fmt"
	"slices"
	"strings"
)

// The checker says what is wrong with a chunk, in the words of the reference interpreter: the parser that compiles it only
// knows that something is.

// Kinds of tokens; keywords and symbols are their own kind.
const (
	tokenEnd    = "<eof>"
	tokenName   = "<name>"
	tokenNumber = "<number>"
	tokenString = "<string>"
)

// token is a word of a chunk.
type token struct {
	kind string
	text string // as messages show it
	line int
}

// syntaxFault is an error of the checker on its way out.
type syntaxFault struct{ message string }

// lexer cuts a chunk into tokens.
type lexer struct {
	name string
	src  string
	at   int
	line int
}

func isKeyword(word string) bool {
	switch word {
	case "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not", "or",
		"repeat", "return", "then", "true", "until", "while":
		return true
	}
	return false
}

// fail ends the check.
func (x *lexer) fail(line int, message, near string) {
	if near != "" {
		message += " near '" + near + "'"
	}
	panic(&syntaxFault{fmt.Sprintf("%s:%d: %s", x.name, line, message)})
}

func (x *lexer) peek(offset int) byte {
	if x.at+offset < len(x.src) {
		return x.src[x.at+offset]
	}
	return 0
}

// next returns the next token.
func (x *lexer) next() token {
	x.skip()
	begin := x.at
	if begin >= len(x.src) {
		return token{tokenEnd, tokenEnd, x.line}
	}
	switch c := x.src[begin]; {
	case c == '_' || isLetter(c):
		for isWordByte(x.peek(0)) {
			x.at++
		}
		word := x.src[begin:x.at]
		if isKeyword(word) {
			return token{word, word, x.line}
		}
		return token{tokenName, word, x.line}
	case isDigit(c) || c == '.' && isDigit(x.peek(1)):
		return x.number()
	case c == '"' || c == '\'':
		return x.quoted()
	case c == '[' && (x.peek(1) == '[' || x.peek(1) == '='):
		if level, ok := x.longOpen(); ok {
			x.long(level, "string")
			return token{tokenString, x.src[begin:x.at], x.line}
		}
		if x.peek(1) == '=' {
			x.fail(x.line, "invalid long string delimiter", x.src[begin:begin+2])
		}
	}
	return x.symbol()
}

func isWordByte(c byte) bool { return c == '_' || isLetter(c) || isDigit(c) }

// skip passes spaces and comments.
func (x *lexer) skip() {
	for x.at < len(x.src) {
		switch c := x.src[x.at]; {
		case c == '\n':
			x.line++
			x.at++
		case strings.IndexByte(cSpace, c) >= 0:
			x.at++
		case c == '-' && x.peek(1) == '-':
			x.comment()
		default:
			return
		}
	}
}

func (x *lexer) comment() {
	x.at += 2
	if x.peek(0) == '[' {
		if level, ok := x.longOpen(); ok {
			x.long(level, "comment")
			return
		}
	}
	end := strings.IndexByte(x.src[x.at:], '\n')
	if end < 0 {
		end = len(x.src) - x.at
	}
	x.at += end
}

// longOpen returns how many = stand between the brackets that open a long text here.
func (x *lexer) longOpen() (level int, ok bool) {
	for x.peek(1+level) == '=' {
		level++
	}
	return level, x.peek(1+level) == '['
}

// long passes a long text.
func (x *lexer) long(level int, what string) {
	closing := "]" + strings.Repeat("=", level) + "]"
	body := x.src[x.at+2+level:]
	end := strings.Index(body, closing)
	if end < 0 {
		x.fail(x.line+strings.Count(body, "\n"), "unfinished long "+what, tokenEnd)
	}
	x.line += strings.Count(body[:end], "\n")
	x.at += 2 + level + end + len(closing)
}

func (x *lexer) number() token {
	begin := x.at
	for isDigit(x.peek(0)) || x.peek(0) == '.' {
		x.at++
	}
	if c := x.peek(0) | 0x20; c == 'e' {
		x.at++
		if c := x.peek(0); c == '+' || c == '-' {
			x.at++
		}
	}
	for isWordByte(x.peek(0)) {
		x.at++
	}
	text := x.src[begin:x.at]
	if _, ok := parseNumber(text); !ok {
		x.fail(x.line, "malformed number", text)
	}
	return token{tokenNumber, text, x.line}
}

func (x *lexer) quoted() token {
	begin, quote := x.at, x.src[x.at]
	for x.at++; x.peek(0) != quote; x.at++ {
		switch {
		case x.at >= len(x.src):
			x.fail(x.line, "unfinished string", tokenEnd)
		case x.src[x.at] == '\n':
			x.fail(x.line, "unfinished string", x.src[begin:x.at])
		case x.src[x.at] == '\\':
			x.escape(begin)
		}
	}
	x.at++
	return token{tokenString, x.src[begin:x.at], x.line}
}

// escape passes what stands behind a backslash, but for its last byte.
func (x *lexer) escape(begin int) {
	x.at++
	switch {
	case x.peek(0) == '\n':
		x.line++
	case isDigit(x.peek(0)):
		n, digits := 0, 0
		for ; digits < 3 && isDigit(x.peek(digits)); digits++ {
			n = n*10 + int(x.peek(digits)-'0')
		}
		x.at += digits - 1
		if n > 255 {
			x.fail(x.line, "escape sequence too large", x.src[begin:x.at+1])
		}
	}
}

// symbols are those of several characters, longer ones first.
var symbols = []string{"...", "..", "==", "~=", "<=", ">="}

func (x *lexer) symbol() token {
	rest := x.src[x.at:]
	if i := slices.IndexFunc(symbols, func(s string) bool { return strings.HasPrefix(rest, s) }); i >= 0 {
		x.at += len(symbols[i])
		return token{symbols[i], symbols[i], x.line}
	}
	c := rest[0]
	x.at++
	if c < ' ' || c == 0x7f {
		return token{string([]byte{c}), fmt.Sprintf("char(%d)", c), x.line}
	}
	return token{string([]byte{c}), string([]byte{c}), x.line}
}
