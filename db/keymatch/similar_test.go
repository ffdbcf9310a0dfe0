package keymatch

import (
	"bytes"
	"gotycoon/db/owed"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSimilarity(t *testing.T) {
	for _, c := range []struct {
		name        string
		origin, key string
		utf         bool
		limit       int64
		want        int64
	}{
		{"equal", "apple", "apple", false, 0, 0},
		{"replaced", "appla", "apple", false, 1, 1},
		{"inserted and removed", "kitten", "sitting", false, 3, 3},
		{"beyond the limit", "kitten", "sitting", false, 2, TooFar},
		{"too long", "a", "abcd", false, 2, TooFar},
		{"empty origin", "", "ab", false, 2, 2},
		{"empty key", "ab", "", false, 2, 2},
		{"a negative limit is one", "ab", "ac", false, -7, 1},
		{"a negative limit is no more than one", "ab", "cd", false, -7, TooFar},
		{"two bytes", "éte", "ete", false, 9, 2},
		{"one character", "éte", "ete", true, 9, 1},
		{"no limit", "abc", "xyz", false, math.MaxInt64, 3},
		{"stray bytes do not count", "ab", "\xffa\xfe\xffb\xb3", true, 0, 0},
		{"a character that is cut short does not count", "a", "a\xe6\x97", true, 0, 0},
		{"the first byte says how many follow", "", "\xe6ab", true, 9, 1},
		{"characters that are written too long do not count", "", "\xc0\x80\xe0\x80\x80", true, 9, 0},
		{"characters beyond Unicode", "\xf8\x88\x80\x80\x80", "\xfc\x84\x80\x80\x80\x80", true, 9, 1},
		{"a zero byte ends a character", "\x00a", "\xe6\x00a", true, 0, 0},
		{"bytes are bytes without utf", "\xff", "\xfe", false, 9, 1},
		{"more work than allowed", strings.Repeat("a", 1<<17), strings.Repeat("b", 1<<17), false, 1 << 17, TooFar},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, Similarity(new(owed.Heeding), []byte(c.origin), c.utf, c.limit)([]byte(c.key)))
		})
	}
}

// TestSimilarityIsTheDistance compares with the textbook's full table, key after key with one function.
func TestSimilarityIsTheDistance(t *testing.T) {
	text := rapid.StringOfN(rapid.RuneFrom([]rune("abcdé\xff")), 0, 12, -1)
	rapid.Check(t, func(t *rapid.T) {
		origin, utf, limit := text.Draw(t, "origin"), rapid.Bool().Draw(t, "utf"), rapid.Int64Range(0, 14).Draw(t, "limit")
		similar := Similarity(new(owed.Heeding), []byte(origin), utf, limit)
		for _, key := range rapid.SliceOfN(text, 1, 4).Draw(t, "keys") {
			want := int64(0)
			if utf {
				want = fullTable(appendCharacters(nil, nil, []byte(origin)), appendCharacters(nil, nil, []byte(key)))
			} else {
				want = fullTable([]byte(origin), []byte(key))
			}
			if want > limit {
				want = TooFar
			}
			require.Equal(t, want, similar([]byte(key)), key)
		}
	})
}

func fullTable[T comparable](a, b []T) int64 {
	table := make([][]int64, len(a)+1)
	for i := range table {
		table[i] = make([]int64, len(b)+1)
		for j := range table[i] {
			if i == 0 || j == 0 {
				table[i][j] = int64(i + j)
				continue
			}
			replaced := table[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			table[i][j] = min(replaced, table[i-1][j]+1, table[i][j-1]+1)
		}
	}
	return table[len(a)][len(b)]
}

func FuzzSimilarity(f *testing.F) {
	f.Add([]byte("kitten"), []byte("sitting"), true)
	f.Add([]byte("\xff\xc3é"), []byte("é"), true)
	f.Fuzz(func(t *testing.T, a, b []byte, utf bool) {
		there, back := Similarity(new(owed.Heeding), a, utf, 1<<20)(b), Similarity(new(owed.Heeding), b, utf, 1<<20)(a)
		require.Equal(t, there, back)
		require.Equal(t, bytes.Equal(a, b), there == 0)
		if utf && utf8.Valid(a) && utf8.Valid(b) && len(a)+len(b) < 200 {
			require.Equal(t, fullTable([]rune(string(a)), []rune(string(b))), there)
		}
	})
}

func TestTopSimilar(t *testing.T) {
	add := func(top *Nearest) []string {
		for i := range 3 * sortRoom {
			_ = top.Add(int64(5+i%3), []byte{byte(i >> 8), byte(i)})
		}
		_ = top.Add(2, []byte("b"))
		_ = top.Add(2, []byte("a"))
		_ = top.Add(1, []byte("z"))
		var keys []string
		for _, key := range top.Keys() {
			keys = append(keys, string(key))
		}
		return keys
	}
	require.Equal(t, []string{"z", "a", "b", "\x00\x00", "\x00\x03"}, add(&Nearest{max: 5}))
	require.Equal(t, []string{"z"}, add(&Nearest{max: 1}))
	require.Empty(t, add(&Nearest{max: 0}))
	require.Len(t, add(&Nearest{max: -1}), 3*sortRoom+3)
	require.Len(t, add(&Nearest{max: math.MaxInt64}), 3*sortRoom+3)
}
