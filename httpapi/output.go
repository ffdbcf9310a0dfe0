package httpapi

import (
	"bytes"
	"strconv"

	"gotycoon/db"
	"gotycoon/internal/lenient"
)

// Output rows are slices of the arena or of buffers that live until the reply is written. When the arena is full another one takes its
// place, and earlier rows keep the old one.

const (
	fewBytes  = 256
	mostBytes = 64 << 10 // of an arena, unless one text is longer
)

// reserve makes room for n bytes in the arena, and reports whether there is memory for them. When there is none the request is refused in
// the end.
func (s *Session) reserve(n int) bool {
	if n <= cap(s.arena)-len(s.arena) {
		return true
	}
	room := max(n, fewBytes, min(2*cap(s.arena), mostBytes))
	if s.lack == nil {
		s.lack = s.c.Hold(room)
	}
	if s.lack != nil {
		return false
	}
	s.arena = make([]byte, 0, room)
	return true
}

// intern copies text into the arena.
func (s *Session) intern(text string) []byte {
	if !s.reserve(len(text)) {
		return nil
	}
	from := len(s.arena)
	s.arena = append(s.arena, text...)
	return s.arena[from:len(s.arena):len(s.arena)]
}

// internBytes copies text, with a prefix, into the arena.
func (s *Session) internBytes(prefix string, text []byte) []byte {
	if !s.reserve(len(prefix) + len(text)) {
		return nil
	}
	from := len(s.arena)
	s.arena = append(append(s.arena, prefix...), text...)
	return s.arena[from:len(s.arena):len(s.arena)]
}

func (s *Session) internInt(n int64) []byte {
	const longest = 20
	if !s.reserve(longest) {
		return nil
	}
	from := len(s.arena)
	s.arena = strconv.AppendInt(s.arena, n, 10)
	return s.arena[from:len(s.arena):len(s.arena)]
}

// short returns why there is no memory for what the request needs, nil where there is.
func (s *Session) short() error {
	if s.lack != nil {
		return s.lack
	}
	if err := s.in.Err(); err != nil {
		return err
	}
	return s.out.Err()
}

// outBytes adds an output row. value must stay as it is until the reply is written.
func (s *Session) outBytes(name string, value []byte) { s.out.Add(s.intern(name), value) }

func (s *Session) outText(name, value string) { s.out.Add(s.intern(name), s.intern(value)) }

func (s *Session) outInt(name string, n int64) { s.out.Add(s.intern(name), s.internInt(n)) }

// outXT adds the expiration time, if the record has one.
func (s *Session) outXT(xt int64) {
	if xt < db.MaxXT {
		s.outInt("xt", xt)
	}
}

// outMap adds the rows of a map, in the order of their names.
func (s *Session) outMap(rows map[string]string) {
	for name, value := range rows {
		s.outText(name, value)
	}
	s.out.Sort()
}

// keepValue remembers a larger buffer than the session had for values.
func (s *Session) keepValue(value []byte) {
	if cap(value) > cap(s.value) {
		s.value = value[:0]
	}
}

// param returns a parameter the procedure cannot do without.
func (s *Session) param(name string) ([]byte, error) {
	value, ok := s.in.Get(name)
	if !ok {
		return nil, errInvalidParameters
	}
	return value, nil
}

// xt returns the expiration argument (6.2).
func (s *Session) xt() db.XT {
	text, ok := s.in.Get("xt")
	if !ok {
		return db.Never
	}
	return db.XT(lenient.Int(text))
}

// intOr returns an integer parameter, or the default where it is absent.
func (s *Session) intOr(name string, absent int64) int64 {
	text, ok := s.in.Get(name)
	if !ok {
		return absent
	}
	return lenient.Int(text)
}

// untilNUL returns text up to its first NUL.
func untilNUL(text []byte) []byte {
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return text[:i]
	}
	return text
}
