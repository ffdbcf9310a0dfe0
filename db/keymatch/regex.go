// Package keymatch finds keys: by POSIX extended regular expressions in the dialect of the GNU C
// library, and by their edit distance to a text. It knows nothing of databases. Long work asks an
// owed.Heeding whether to go on.
package keymatch

import (
	"bytes"
	"gotycoon/db/dberr"
	"gotycoon/db/owed"
	"io"
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
// The function returned must not be called by two goroutines at once. Its result means nothing where h ends the work.
func Matcher(h *owed.Heeding, pattern string) (func(key []byte) bool, error) {
	pattern, _, _ = strings.Cut(pattern, "\x00")
	if len(pattern) > maxRegexLen {
		return nil, dberr.ErrRegex
	}
	root, err := parseRegex(pattern)
	if err != nil {
		return nil, err
	}
	match := newBacktracker(h, root).match
	if re := linear(root); re != nil {
		match = matchLatin1(h, re, root.size())
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

// matchLatin1 matches keys with each byte as the character of that number. size is that of the expression: the time for each byte may
// grow with it.
func matchLatin1(h *owed.Heeding, re *regexp.Regexp, size int) func(key []byte) bool {
	var room []byte
	return func(key []byte) bool {
		if len(key)*size > wholeWork {
			return re.MatchReader(&heedingReader{heeding: h, text: key, size: size})
		}
		h.Work(len(key) * size)
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

// wholeWork bounds the bytes times the size of an expression that package regexp is given at once: nobody can stop it then.
const wholeWork = owed.HeedSteps / 4

// heedingReader gives an expression the bytes of a long text one by one, each as the character of that number. Where the work has to
// end, so does the text.
type heedingReader struct {
	heeding *owed.Heeding
	text    []byte
	at      int
	size    int // of the expression
}

// ReadRune implements io.RuneReader. A character has the width of its byte: so places in a match are places in the text.
func (r *heedingReader) ReadRune() (c rune, width int, err error) {
	if r.at == len(r.text) || !r.heeding.Work(r.size) {
		return 0, 0, io.EOF
	}
	c = rune(r.text[r.at])
	r.at++
	return c, 1, nil
}
