package keymatch

import (
	"fmt"
	"math/bits"
)

// byteSet is a set of bytes.
type byteSet [4]uint64

func (s *byteSet) add(c byte) { s[c/64] |= 1 << (c % 64) }

func (s *byteSet) addRange(from, to byte) {
	for c := int(from); c <= int(to); c++ {
		s.add(byte(c))
	}
}

func (s *byteSet) addSet(t byteSet) {
	for i := range s {
		s[i] |= t[i]
	}
}

func (s *byteSet) has(c byte) bool { return s[c/64]>>(c%64)&1 != 0 }

func (s byteSet) inverted() byteSet {
	for i := range s {
		s[i] = ^s[i]
	}
	return s
}

// appendSource appends the set as a character class of package regexp.
func (s byteSet) appendSource(dst []byte) []byte {
	if s == (byteSet{}).inverted() {
		return append(dst, "(?s:.)"...)
	}
	dst = append(dst, '[')
	for c := s.next(0); c < 256; {
		end := s.inverted().next(c)
		dst = fmt.Appendf(dst, `\x{%x}-\x{%x}`, c, end-1)
		c = s.next(end)
	}
	return append(dst, ']')
}

// next returns the least member from c on, and 256 where there is none.
func (s byteSet) next(c int) int {
	for ; c < 256; c = c/64*64 + 64 {
		if word := s[c/64] >> (c % 64); word != 0 {
			return c + bits.TrailingZeros64(word)
		}
	}
	return 256
}
