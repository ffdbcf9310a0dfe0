package remote

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The words of a line of the shell are separated by blanks and tabs.
//
//	get japan            two words
//	get 'a b'            everything up to the next ' belongs to the word as it is
//	get "a\tb\x00"       \n \t \r \\ \" and \xHH, a byte in hexadecimal, stand for something
//	get a\ b             a backslash outside of quotes takes the next character as it is
//	# get japan          a # at the beginning of a word begins a comment
//
// One difference from a POSIX shell: there are no variables, patterns, pipes and lists, so that no
// key means anything but itself.

// word is a word of a line.
type word struct {
	text  string
	begin int  // where it begins in the line
	open  rune // the quote that has no end; 0: none
}

var errQuote = errors.New("a quote has no end")

// splitWords returns the words of a line.
func splitWords(line string) ([]string, error) {
	var texts []string
	for _, w := range wordsOf(line) {
		if w.open != 0 {
			return nil, errQuote
		}
		texts = append(texts, w.text)
	}
	return texts, nil
}

// wordsOf returns the words of a line, of which the last one may have an open quote.
func wordsOf(line string) []word {
	var words []word
	for i := 0; ; {
		for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
			i++
		}
		if i == len(line) || line[i] == '#' {
			return words
		}
		w, n := firstWord(line[i:])
		w.begin = i
		words = append(words, w)
		i += n
	}
}

// firstWord returns the word at the beginning of a text, and the length that it takes there.
func firstWord(text string) (w word, n int) {
	var b strings.Builder
	quote := rune(0)
	for n < len(text) {
		c := text[n]
		switch {
		case quote == 0 && (c == ' ' || c == '\t'):
			return word{text: b.String()}, n
		case rune(c) == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = rune(c)
		case c == '\\' && quote != '\'' && n+1 < len(text):
			decoded, used := escaped(text[n+1:], quote == '"')
			b.WriteString(decoded)
			n += used
		default:
			b.WriteByte(c)
		}
		n++
	}
	return word{text: b.String(), open: quote}, n
}

// escaped returns what the characters behind a backslash stand for, and how many they are.
func escaped(text string, quoted bool) (decoded string, used int) {
	if quoted {
		if i := strings.IndexByte("ntr", text[0]); i >= 0 {
			return "\n\t\r"[i : i+1], 1
		}
		if text[0] == 'x' && len(text) >= 3 {
			if b, err := strconv.ParseUint(text[1:3], 16, 8); err == nil {
				return string([]byte{byte(b)}), 3
			}
		}
	}
	return text[:1], 1
}

// quoteWord returns a text as a word that the shell reads as this text.
func quoteWord(text string) string {
	plain := text != "" && text[0] != '#' && utf8.ValidString(text) &&
		!strings.ContainsFunc(text, func(r rune) bool { return strings.ContainsRune(` "'\`, r) || !strconv.IsPrint(r) })
	if plain {
		return text
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + text[i:i+n])
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteString(map[rune]string{'\n': `\n`, '\t': `\t`, '\r': `\r`}[r])
		case r == utf8.RuneError && n == 1 || !strconv.IsPrint(r):
			for _, c := range []byte(text[i : i+n]) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		default:
			b.WriteString(text[i : i+n])
		}
		i += n
	}
	return b.String() + `"`
}
