package jsonrows

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads the tokens of a body.
type scanner struct {
	body   []byte
	at     int
	line   int    // of at
	start  int    // where the line begins
	within []byte // the member being read, for errors
}

// fail returns an error about the place that the scanner has come to.
func (s *scanner) fail(reason string) error {
	if s.at >= len(s.body) {
		reason = "the body ends too early"
	}
	return &Error{Line: s.line, Column: s.at - s.start + 1, Member: string(s.within), Reason: reason}
}

// skipSpace passes over blanks. Lines end only there: a string has no raw line ends.
func (s *scanner) skipSpace() {
	for s.at < len(s.body) {
		switch s.body[s.at] {
		case '\n':
			s.line++
			s.start = s.at + 1
		case ' ', '\t', '\r':
		default:
			return
		}
		s.at++
	}
}

// peek passes over blanks and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	if s.skipSpace(); s.at < len(s.body) {
		return s.body[s.at]
	}
	return 0
}

// expect passes over a byte.
func (s *scanner) expect(c byte) error {
	if s.peek() != c {
		return s.fail("expected " + string(c))
	}
	s.at++
	return nil
}

// object reads an object; member reads the value of each member.
func (s *scanner) object(member func(name []byte) error) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	if s.peek() == '}' {
		s.at++
		return nil
	}
	for {
		if s.peek() != '"' {
			return s.fail("expected the name of a member, in double quotes")
		}
		name, err := s.text()
		if err == nil {
			err = s.expect(':')
		}
		if err == nil {
			err = member(name)
		}
		if err != nil {
			return err
		}
		if s.peek() == ',' {
			s.at++
			continue
		}
		return s.expect('}')
	}
}

// array reads an array; element reads each element.
func (s *scanner) array(element func() error) error {
	if err := s.expect('['); err != nil {
		return err
	}
	if s.peek() == ']' {
		s.at++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if s.peek() == ',' {
			s.at++
			continue
		}
		return s.expect(']')
	}
}

// literal reads true, false or null.
func (s *scanner) literal() (word string, err error) {
	s.skipSpace()
	for _, word := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(s.body[s.at:], []byte(word)) {
			s.at += len(word)
			return word, nil
		}
	}
	return "", s.fail(`expected a string, a number, true, false, null or {"base64": …}`)
}

// text reads a string, which is decoded where it stands. Its capacity shows where that is.
func (s *scanner) text() ([]byte, error) {
	from := s.at + 1
	to := from // what has been decoded is body[from:to]
	for s.at = from; s.at < len(s.body); {
		switch c := s.body[s.at]; {
		case c == '"':
			text := s.body[from:to]
			if !utf8.Valid(text) {
				s.at = from - 1
				return nil, s.fail(`the string is no UTF-8: give bytes as {"base64": …}`)
			}
			s.at++
			return text, nil
		case c == '\\':
			r, err := s.escape()
			if err != nil {
				return nil, err
			}
			to += utf8.EncodeRune(s.body[to:], r)
		case c < ' ':
			return nil, s.fail(`a control byte in a string must be escaped, as \n or \u0000`)
		default:
			s.body[to] = c
			to++
			s.at++
		}
	}
	return nil, s.fail("")
}

// escape reads an escape in a string.
func (s *scanner) escape() (rune, error) {
	rest := s.body[s.at:]
	if len(rest) < 2 {
		s.at = len(s.body)
		return 0, s.fail("")
	}
	if rest[1] == 'u' {
		return s.unicode()
	}
	i := bytes.IndexByte([]byte(`"\/bfnrt`), rest[1])
	if i < 0 {
		return 0, s.fail("an unknown escape")
	}
	s.at += 2
	return rune("\"\\/\b\f\n\r\t"[i]), nil
}

// unicode reads \uXXXX, or two of them that stand for one character.
func (s *scanner) unicode() (rune, error) {
	r, ok := hex4(s.body[s.at:])
	if !ok {
		return 0, s.fail(`an escape \u needs four hexadecimal digits`)
	}
	if !utf16.IsSurrogate(r) {
		s.at += 6
		return r, nil
	}
	low, _ := hex4(s.body[s.at+6:])
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, s.fail("half of a character: a surrogate without the other one")
	}
	s.at += 12
	return r, nil
}

// hex4 reads \uXXXX at the beginning of text.
func hex4(text []byte) (r rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range text[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// IsNumber reports whether a text is a number of JSON.
func IsNumber(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("-"))
	whole := digits(text)
	if whole == 0 || whole > 1 && text[0] == '0' {
		return false
	}
	text = text[whole:]
	if len(text) > 0 && text[0] == '.' {
		n := digits(text[1:])
		if n == 0 {
			return false
		}
		text = text[1+n:]
	}
	if len(text) > 0 && text[0]|0x20 == 'e' {
		text = text[1:]
		if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
			text = text[1:]
		}
		n := digits(text)
		return n > 0 && n == len(text)
	}
	return len(text) == 0
}

// digits returns how many digits a text begins with.
func digits(text []byte) int {
	n := 0
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n
}
