package db

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"
)

// maxSimilarCells bounds the work for one key: two texts that would need more comparisons count as too far apart.
const maxSimilarCells = 1 << 30

// tooFar stands for a distance over the limit.
const tooFar = -1

// similarity returns a function that tells how many characters must be inserted, removed or replaced to turn a key
// into origin, and tooFar where that is more than limit. A negative limit is 1. Characters are bytes, or with
// utf the characters of UTF-8, where each byte that is not part of one is a character of its own
// (reference: section 8).
//
// The function returned must not be called by two goroutines at once.
func similarity(origin []byte, utf bool, limit int64) func(key []byte) int64 {
	if limit < 0 {
		limit = 1
	}
	var row []int
	if !utf {
		origin = bytes.Clone(origin)
		return func(key []byte) int64 { return distance(origin, key, limit, &row) }
	}
	var room []rune
	characters := appendCharacters(nil, origin)
	return func(key []byte) int64 {
		room = appendCharacters(room[:0], key)
		return distance(characters, room, limit, &row)
	}
}

// appendCharacters appends the characters of text, and for each stray byte a number beyond all characters.
func appendCharacters(dst []rune, text []byte) []rune {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size == 1 {
			r = utf8.MaxRune + 1 + rune(text[0])
		}
		dst, text = append(dst, r), text[size:]
	}
	return dst
}

// distance returns the Levenshtein distance of a and b, tooFar where it is over limit. Only the cells of the usual
// table that lie within limit of the diagonal are computed, row by row in *room.
func distance[T comparable](a, b []T, limit int64, room *[]int) int64 {
	a, b = trimmed(a, b)
	if len(a) > len(b) {
		a, b = b, a
	}
	width := int(min(limit, int64(len(b))))
	if len(b)-len(a) > width || len(a) > maxSimilarCells/min(2*width+1, len(b)+1) {
		return tooFar
	}
	row := (*room)[:0]
	for j := range len(a) + 1 {
		row = append(row, j)
	}
	*room = row
	for i := 1; i <= len(b); i++ {
		if nextRow(row, a, b[i-1], i, width) > width {
			return tooFar
		}
	}
	if row[len(a)] > width {
		return tooFar
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
type topSimilar struct {
	max    int64 // keys to keep, all where negative
	memory Memory
	found  []similarKey
	err    error // of memory
}

type similarKey struct {
	distance int64
	key      []byte
}

// sortRoom is how many more keys than wanted are collected before the worst are dropped.
const sortRoom = 1 << 10

// add takes over a copy of key.
func (t *topSimilar) add(distance int64, key []byte) {
	if t.err = t.memory.ask(key); t.err != nil {
		return
	}
	t.found = append(t.found, similarKey{distance, bytes.Clone(key)})
	if t.max >= 0 && int64(len(t.found))-sortRoom > t.max {
		t.sort()
	}
}

// keys returns what has been kept, the best first.
func (t *topSimilar) keys() [][]byte {
	t.sort()
	keys := make([][]byte, len(t.found))
	for i, f := range t.found {
		keys[i] = f.key
	}
	return keys
}

func (t *topSimilar) sort() {
	slices.SortStableFunc(t.found, func(a, b similarKey) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), bytes.Compare(a.key, b.key))
	})
	if t.max >= 0 && int64(len(t.found)) > t.max {
		clear(t.found[t.max:])
		t.found = t.found[:t.max]
	}
}
