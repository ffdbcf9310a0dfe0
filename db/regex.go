package db

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Limits of an expression. Beyond the first two it does not compile, as one that the C library has no memory for.
const (
	maxRegexLen   = 64 << 10 // bytes
	maxRegexDepth = 1000     // groups, alternatives and repetitions inside each other
	maxLinearSize = 64 << 10 // positions, with repetitions written out; a longer one backtracks, see backtracker
)

// compileRegex compiles a POSIX extended regular expression in the dialect of the GNU C library, C locale: bytes are
// characters, a match may be anywhere in the key, nothing is said about where (reference: section 8). Pattern and
// keys end at a NUL byte. It returns ErrRegex for a bad expression.
//
// Nearly all expressions become one for package regexp, whose time is linear in the length of the key. It
// has no back-references, \< and \>; expressions with those run on a backtracker with a budget.
//
// The function returned must not be called by two goroutines at once.
func compileRegex(pattern string) (func(key []byte) bool, error) {
	pattern, _, _ = strings.Cut(pattern, "\x00")
	if len(pattern) > maxRegexLen {
		return nil, ErrRegex
	}
	root, err := parseRegex(pattern)
	if err != nil {
		return nil, err
	}
	match := newBacktracker(root).match
	if re := linear(root); re != nil {
		match = matchLatin1(re)
	}
	return func(key []byte) bool {
		key, _, _ = bytes.Cut(key, []byte{0})
		return match(key)
	}, nil
}

// linear returns the expression for package regexp, nil where that cannot express it or is not to.
func linear(root *regexNode) *regexp.Regexp {
	if root.size() > maxLinearSize {
		return nil
	}
	source, ok := root.appendSource(nil)
	if !ok {
		return nil
	}
	re, err := regexp.Compile(string(source))
	if err != nil { // more than 1000 repetitions
		return nil
	}
	return re
}

// matchLatin1 matches keys with each byte as the character of that number.
func matchLatin1(re *regexp.Regexp) func(key []byte) bool {
	var room []byte
	return func(key []byte) bool {
		if isASCII(key) {
			return re.Match(key)
		}
		room = room[:0]
		for _, c := range key {
			room = utf8.AppendRune(room, rune(c))
		}
		return re.Match(room)
	}
}

func isASCII(s []byte) bool {
	for _, c := range s {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
