package keymatch

import (
	"bytes"
	"cmp"
	"gotycoon/db/owed"
	"slices"
)

// maxSimilarCells bounds the work for one key: two texts that would need more comparisons count as too far apart.
const maxSimilarCells = 1 << 30

// tooFar stands for a distance over the limit.
const TooFar = -1

// similarity returns a function that tells how many characters must be inserted, removed or replaced to turn a key
// into origin, and tooFar where that is more than limit. A negative limit is 1. Characters are bytes, or with
// utf the characters of UTF-8, see appendCharacters (reference: section 8).
//
// The function returned must not be called by two goroutines at once.
func Similarity(h *owed.Heeding, origin []byte, utf bool, limit int64) func(key []byte) int64 {
	if limit < 0 {
		limit = 1
	}
	var row []int
	if !utf {
		origin = bytes.Clone(origin)
		return func(key []byte) int64 { return distance(h, origin, key, limit, &row) }
	}
	var room []rune
	characters := appendCharacters(nil, h, origin)
	return func(key []byte) int64 {
		room = appendCharacters(room[:0], h, key)
		return distance(h, characters, room, limit, &row)
	}
}

// appendCharacters appends the characters of text as the original counts them. The first byte of a character says how many follow, and
// what these are does not matter. A character that is cut short, and one that is written longer than it has to be, do not count. Where the
// work has to end it leaves out the rest.
func appendCharacters(dst []rune, h *owed.Heeding, text []byte) []rune {
	dst = slices.Grow(dst, len(text)) // a large table that grows is copied in one go
	for i := 0; i < len(text) && h.Work(1); i++ {
		r, more, least := firstByte(text[i])
		if more > 0 && (more >= len(text)-i || bytes.IndexByte(text[i+1:i+1+more], 0) >= 0) {
			continue
		}
		for range more {
			i++
			r = r<<6 | rune(text[i]&0x3f)
		}
		if r >= least {
			dst = append(dst, r)
		}
	}
	return dst
}

// firstByte returns the bits of a character that its first byte has, the number of bytes that follow, and the least character of that
// length.
func firstByte(c byte) (bits rune, more int, least rune) {
	switch {
	case c < 0x80:
		return rune(c), 0, 0
	case c < 0xe0:
		return rune(c & 0x1f), 1, 0x80
	case c < 0xf0:
		return rune(c & 0x0f), 2, 0x800
	case c < 0xf8:
		return rune(c & 0x07), 3, 0x10000
	case c < 0xfc:
		return rune(c & 0x03), 4, 0x200000
	case c < 0xfe:
		return rune(c & 0x01), 5, 0x4000000
	}
	return -1, 0, 0
}

// distance returns the Levenshtein distance of a and b, tooFar where it is over limit. Only the cells of the usual
// table that lie within limit of the diagonal are computed, row by row in *room. The result means nothing where the work had to end.
func distance[T comparable](h *owed.Heeding, a, b []T, limit int64, room *[]int) int64 {
	h.Work(min(len(a), len(b)))
	a, b = trimmed(a, b)
	if len(a) > len(b) {
		a, b = b, a
	}
	width := int(min(limit, int64(len(b))))
	if len(b)-len(a) > width || len(a) > maxSimilarCells/min(2*width+1, len(b)+1) {
		return TooFar
	}
	row := (*room)[:0]
	for j := range len(a) + 1 {
		row = append(row, j)
	}
	*room = row
	for i := 1; i <= len(b); i++ {
		if !h.Work(1+min(len(a), 2*width+1)) || nextRow(row, a, b[i-1], i, width) > width {
			return TooFar
		}
	}
	if row[len(a)] > width {
		return TooFar
	}
	return int64(row[len(a)])
}

// nextRow turns row i-1 into row i, for the character c of the longer text, and returns the least distance in it.
// Cells more than width from the diagonal are too great.
func nextRow[T comparable](row []int, a []T, c T, i, width int) int {
	from := max(1, i-width)
	diagonal := row[from-1]
	row[from-1] = i
	least := i
	for j := from; j <= min(len(a), i+width); j++ {
		above := row[j]
		if a[j-1] == c {
			row[j] = diagonal
		} else {
			row[j] = min(diagonal, above, row[j-1]) + 1
		}
		diagonal = above
		least = min(least, row[j])
	}
	return least
}

// trimmed cuts what a and b begin and end with alike.
func trimmed[T comparable](a, b []T) (_, _ []T) {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return a, b
}

// topSimilar collects keys and keeps the best: nearest first, then by bytes, then as they came.
type Nearest struct {
	max     int64 // keys to keep, all where negative
	memory  Memory
	found   []similarKey
	heeding *owed.Heeding
}

// newTopSimilar returns a collection that keeps max keys, all where max is negative. memory is asked for the memory of each key.
func NewNearest(max int64, h *owed.Heeding, memory Memory) *Nearest {
	return &Nearest{max: max, heeding: h, memory: memory}
}

type similarKey struct {
	distance int64
	key      []byte
}

// sortRoom is how many more keys than wanted are collected at least before the worst are dropped; where many are wanted, as many again.
const sortRoom = 1 << 10

// add takes over a copy of key.
func (t *Nearest) Add(distance int64, key []byte) (err error) {
	if err = t.memory.Ask(key); err != nil {
		return err
	}
	t.found = append(t.found, similarKey{distance, bytes.Clone(key)})
	if t.max >= 0 && int64(len(t.found))-max(sortRoom, t.max) > t.max {
		t.sort()
	}
	return nil
}

// keys returns what has been kept, the best first; in some order where the work had to end.
func (t *Nearest) Keys() [][]byte {
	t.sort()
	keys := make([][]byte, len(t.found))
	for i, f := range t.found {
		keys[i] = f.key
	}
	return keys
}

// compareWork is what a comparison of two keys costs in the steps of a Heeding.
const compareWork = 16

func (t *Nearest) sort() {
	slices.SortStableFunc(t.found, func(a, b similarKey) int {
		if !t.heeding.Work(compareWork) {
			return 0
		}
		return cmp.Or(cmp.Compare(a.distance, b.distance), bytes.Compare(a.key, b.key))
	})
	if t.max >= 0 && int64(len(t.found)) > t.max {
		clear(t.found[t.max:])
		t.found = t.found[:t.max]
	}
}

// Memory is asked for memory before an operation takes it, and returns why there is none; the operation then returns that. nil: there is
// always some.
type Memory func(bytes int) error

// keyOverhead is what a key of a list takes beside its bytes: its slice, in a table that doubles when it grows, and the rounding of
// small blocks.
const keyOverhead = 72

// ask asks for the memory of a key.
func (m Memory) Ask(key []byte) error {
	if m == nil {
		return nil
	}
	return m(keyOverhead + len(key))
}
