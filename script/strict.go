package script

import (
	"regexp"
	"strings"
)

// The library's parser accepts chunks that Lua 5.1 refuses, and it misreads some of them: the
// escape in "\300" becomes another byte. A script that tests a chunk with loadstring must get the
// answer of the reference interpreter, so strict refuses these chunks. A look at the tokens is
// enough, because the parser has accepted the chunk already:
//
//	"\300"                    an escape above 255
//	goto x   ::x::            statements of later versions of the language
//	;;   {1;,}                a semicolon or comma behind nothing
//	f LF (g or h)()           a call whose parenthesis begins a line: the line break could also
//	                          end a statement, and Lua 5.1 refuses to choose
//
// Refusals that need the syntax tree are in rewriter. tooDeep refuses what the parser must not see.

// numberPattern matches the numbers of Lua 5.1. Any other token that begins like one is malformed.
var numberPattern = regexp.MustCompile(`^(?:0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)$`)

// tokens is what strict knows about the tokens before the current one.
type tokens struct {
	last    string // the last token
	newline bool   // a line has ended since then
	prefix  bool   // the last token ended an expression: a parenthesis behind it would be a call
	locals  bool   // in the names behind "local"
	header  bool   // between "function" and its parameters
	open    []bool // for each open bracket, the value that prefix gets when the bracket is closed
}

// strict returns the first token that Lua 5.1 refuses, and its place in the chunk. The token is
// empty if there is none.
func strict(source string) (wrong string, at int) {
	t := tokens{last: ";"}
	for at < len(source) {
		token := nextToken(source[at:])
		switch {
		case strings.IndexByte(cSpace, token[0]) >= 0 || strings.HasPrefix(token, "--"):
			t.newline = t.newline || strings.ContainsAny(token, "\r\n")
		case !t.accepts(token):
			return token, at
		default:
			t.add(token)
		}
		at += len(token)
	}
	return "", at
}

// accepts reports whether Lua 5.1 accepts the token here. The library's parser has accepted the
// chunk already.
func (t *tokens) accepts(token string) bool {
	switch c := token[0]; {
	case c == '"' || c == '\'':
		return !hasLargeEscape(token)
	case token == "(":
		return len(t.open) < maxLevels && (!t.prefix || !t.newline || t.header)
	case token == ";":
		return !t.beginsStatement() && t.last != ","
	case token == ",":
		return t.last != "," && t.last != ";"
	}
	return token != "goto" && token != "::"
}

// hasLargeEscape reports whether a quoted text has an escape above \255.
func hasLargeEscape(token string) bool {
	for at := 0; at < len(token); at++ {
		if token[at] != '\\' {
			continue
		}
		at++
		n, digits := 0, 0
		for ; digits < 3 && at+digits < len(token) && isDigit(token[at+digits]); digits++ {
			n = n*10 + int(token[at+digits]-'0')
		}
		if n > 255 {
			return true
		}
		at += max(digits, 1) - 1
	}
	return false
}

// beginsStatement reports whether a statement has to begin behind the last token.
func (t *tokens) beginsStatement() bool {
	switch t.last {
	case ";", "do", "then", "else", "repeat":
		return true
	case ")":
		return !t.prefix // behind the parameters of a function
	}
	return false
}

// add notes a token.
func (t *tokens) add(token string) {
	c := token[0]
	was := t.prefix
	t.locals = token == "local" || t.locals && (token == "," || isName(token) && (t.last == "local" || t.last == ","))
	t.last, t.newline, t.prefix = token, false, false
	switch {
	case token == "function":
		t.header = true
	case isName(token):
		t.prefix = !t.locals
	case c == '"' || c == '\'' || c == '[' && len(token) > 1:
		t.prefix = was
	case token == "(":
		t.open, t.header = append(t.open, !t.header), false
	case token == "{":
		t.open = append(t.open, was)
	case token == "[":
		t.open = append(t.open, true)
	case strings.Contains(")}]", token):
		last := len(t.open) - 1
		t.open, t.prefix = t.open[:last], t.open[last]
	}
}

// tooDeep reports whether constructs are inside each other deeper than rewriter accepts in any
// chunk. It looks at the tokens before the parser does: the parser needs a kilobyte for each level
// and cannot be stopped, so two megabytes of "(" would take a gigabyte that nobody has asked for.
//
// A bracket is a level until it is closed, a block until its end, and in an expression so is each
// operator that binds to the right: 2^2^2, a..b..c, - - -1, not not x.
//
// It ends at a malformed number, which it returns with its place, as the chunk must: behind one the
// parser sees other tokens. Of 1e( it takes all for a number, of 1do the 1 alone.
func tooDeep(source string) (deep bool, wrong string, at int) {
	open := []int{0} // for each open bracket and block, the levels of the expression in it so far
	operand := false // the last token ended an operand
	for token := ""; at < len(source); at += len(token) {
		token = nextToken(source[at:])
		if strings.IndexByte(cSpace, token[0]) >= 0 || strings.HasPrefix(token, "--") {
			continue
		}
		if isNumber(token) && !numberPattern.MatchString(token) {
			return false, token, at
		}
		ended, last := operand, len(open)-1
		operand = false
		switch token {
		case "(", "{", "[", "function", "do", "then", "repeat":
			open = append(open, 0)
		case ")", "}", "]", "end", "until", "elseif": // behind "elseif" comes another "then"
			open = open[:max(last, 1)]
			operand = token != "until" && token != "elseif"
		case "..", "^":
			open[last]++
		case "-", "not", "#":
			if !ended {
				open[last]++
			}
		case "+", "*", "/", "%", ".", ":":
		default:
			operand = token == "nil" || token == "true" || token == "false" || token == "..." || isOperand(token)
			if !operand || ended { // what binds less, or another statement
				open[last] = 0
			}
		}
		if len(open) > maxDepth || open[len(open)-1] > maxDepth {
			return true, "", at
		}
	}
	return false, "", at
}

// isOperand reports whether a token is a name, a number or a text.
func isOperand(token string) bool {
	c := token[0]
	return isName(token) || isNumber(token) || c == '"' || c == '\'' || c == '[' && len(token) > 1
}

// isName reports whether a token is a name, and no keyword.
func isName(token string) bool {
	switch token {
	case "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not", "or",
		"repeat", "return", "then", "true", "until", "while":
		return false
	}
	return token[0] == '_' || isLetter(token[0])
}
