package keymatch

import (
	"gotycoon/db/dberr"
	"gotycoon/db/owed"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRegexDialect holds what the GNU C library answers, in the C locale and without its flag for
// lines.
func TestRegexDialect(t *testing.T) {
	keys := strings.Fields(`a aa d b - ] \ w _ aaaaaa n ab abab foo foo.bar`)
	keys = append(keys, "", " ", "\xe9", "a b")
	for pattern, want := range map[string]string{
		`a**`:          "*",
		`()`:           "*",
		`(|a)`:         "*",
		`|`:            "*",
		`a||b`:         "*",
		`a{,}`:         "*",
		`a{0}`:         "*",
		`a}`:           "",
		`)`:            "",
		`(a){0}\1`:     "",
		`a$b`:          "",
		`a^b`:          "",
		`^^a$$`:        "a",
		`x*^a$`:        "a",
		`a{2}{3}`:      "aaaaaa",
		`^a{,2}$`:      "a aa ",
		`a{32767}`:     "",
		`[[.a.]-c]b`:   "ab abab",
		`[[=a=]]b`:     "ab abab",
		`^[a-]$`:       "a -",
		`^[]a]$`:       "a ]",
		`^[\w]$`:       `\ w`,
		`^[^]a]$`:      "d b - \\ w _ n   \xe9",
		`[---]`:        "-",
		`[%--]`:        "-",
		`[--/]`:        "- foo.bar",
		`[[.-.]]`:      "-",
		`[[]`:          "",
		"\\`a\\'":      "a",
		`\d`:           "d",
		`\n`:           "n",
		`\.`:           "foo.bar",
		`\s`:           "  a b",
		`^\S$`:         "a d b - ] \\ w _ n \xe9",
		`^\w$`:         "a d b w _ n",
		`^\W$`:         "- ] \\   \xe9",
		`\<b`:          "b foo.bar a b",
		`o\>`:          "foo foo.bar",
		`o\b.`:         "foo.bar",
		`^\B$`:         "",
		`a\Bb`:         "ab abab",
		`^[[:punct:]]`: "- ] \\ _",
		"[\xe0-\xff]":  "\xe9",
		"^\xe9$":       "\xe9",
		`^(ab)\1$`:     "abab",
		`(.)\1`:        "aa aaaaaa foo foo.bar",
		`^(a|b)*\1$`:   "aa aaaaaa",
		`(o)(o)?\2`:    "",
		`^a.*?b$`:      "ab abab a b",
	} {
		match, err := Matcher(new(owed.Heeding), pattern)
		require.NoError(t, err, pattern)
		var got []string
		for _, key := range keys {
			if match([]byte(key)) {
				got = append(got, key)
			}
		}
		if want == "*" {
			require.Equal(t, keys, got, pattern)
			continue
		}
		require.Equal(t, want, strings.Join(got, " "), pattern)
	}
}

func TestBadRegex(t *testing.T) {
	for _, pattern := range []string{
		`*`, `+`, `?`, `{`, `a|*`, `(*)`, `(^*)`, `^*`, `$*`, `\b*`, `^{1}`, `a|{1}`, `({1})`,
		`\`, `a\`, `(`, `(()`, `(a`,
		`a{`, `a{1`, `a{}`, `a{ 1}`, `a{1,2,3}`, `a{2,1}`, `a{32768}`, `a{99999999999999999999}`, `a{1}{`,
		`[a`, `[`, `[]`, `[^]`, `[c-a]`, `[a-c-e]`, `[a-\]`, `[a---z]`, `[a-`, `[[:alpha]`, `[[:foo:]]`, `[[:alpha:]-z]`,
		`[a-[:digit:]]`, `[[.hyphen.]]`, `[[.ab.]]`, `[[==]]`, `[[..]]`, `[[:`, `[[.`,
		`\1`, `(a)\2`, `(a\1)`, `(a)|\1`, `(a|(b)|\2)`,
		strings.Repeat("(", 5000) + strings.Repeat(")", 5000),
		"a" + strings.Repeat("{1}", 5000),
		strings.Repeat("a", maxRegexLen+1),
	} {
		_, err := Matcher(new(owed.Heeding), pattern)
		require.ErrorIs(t, err, dberr.ErrRegex, "%.40q", pattern)
	}
}

func TestRegexEndsAtNUL(t *testing.T) {
	match, err := Matcher(new(owed.Heeding), "ab$\x00(")
	require.NoError(t, err)
	require.True(t, match([]byte("ab\x00cd")))
	require.True(t, match([]byte("ab")))
	require.False(t, match([]byte("abcd\x00ab")))
}

// TestRegexComesBack holds expressions that take other backtrackers for ever, or their stack.
func TestRegexComesBack(t *testing.T) {
	long := []byte(strings.Repeat("a", 1<<16))
	for _, pattern := range []string{
		`^((a*)*)*\<b`, `^(a|aa)+\1b`, `(a*)*(a*)*(a*)*\1b`, `((a)*)*\2b`, `(((a{0,999}){0,999}){0,999}){0,999}b`,
		`(a{32767}){32767}`, `((((()*)*){32767}){32767}){32767}\<b`, `(.*)(.*)(.*)(.*)\4b`, `((a{1,900}){1,900}){1,900}b`,
	} {
		match, err := Matcher(new(owed.Heeding), pattern)
		require.NoError(t, err, pattern)
		require.False(t, match(long), pattern)
		require.False(t, match(long[:1000]), pattern)
	}
}

func TestOverrunsOfTheBudget(t *testing.T) {
	root, err := parseRegex(`^((a*)*)*\<b|\<c`)
	require.NoError(t, err)
	b := newBacktracker(new(owed.Heeding), root)
	for range maxOverruns {
		require.True(t, b.match([]byte("c")), "a key beyond the budget does not hurt the next one")
		require.False(t, b.match([]byte(strings.Repeat("a", 1000))))
	}
	require.False(t, b.match([]byte("c")), "too many of them do")
	require.Equal(t, maxOverruns, b.overruns)
}

func FuzzRegex(f *testing.F) {
	for _, pattern := range []string{`^ap`, `(p)\1`, `[[:alpha:]_-]{2,3}|\<x\>`, `a**|()+`, `[^]\]`, `((a)|b)*\2`, "\xff.", `(^a|b$)*`} {
		f.Add(pattern, []byte("apple\xff ab"))
	}
	f.Fuzz(func(t *testing.T, pattern string, key []byte) {
		if len(key) > 64 || len(pattern) > 64 {
			return
		}
		match, err := Matcher(new(owed.Heeding), pattern)
		again, errAgain := Matcher(new(owed.Heeding), pattern)
		require.Equal(t, err, errAgain)
		if err != nil {
			require.ErrorIs(t, err, dberr.ErrRegex)
			return
		}
		got := match(key)
		require.Equal(t, got, match(key))
		require.Equal(t, got, again(key))
		requireEnginesAgree(t, pattern, key)
	})
}

// requireEnginesAgree compares the two ways to run an expression, where both can and the budget
// lasts.
func requireEnginesAgree(t *testing.T, pattern string, key []byte) {
	pattern, _, _ = strings.Cut(pattern, "\x00")
	root, err := parseRegex(pattern)
	require.NoError(t, err)
	re := linear(root)
	if re == nil || slices.Contains(key, 0) {
		return
	}
	b := newBacktracker(new(owed.Heeding), root)
	if matched := b.match(key); b.overruns == 0 {
		require.Equal(t, matchLatin1(new(owed.Heeding), re, root.size())(key), matched)
	}
}
