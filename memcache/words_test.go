package memcache

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWordsOfALine(t *testing.T) {
	for line, want := range map[string]string{
		"":                  "",
		"get":               "get",
		"get k":             "get|k",
		"  get \t\x01 key ": "get|key",
		"a b\x00c d":        "a|b",
		"\x00a":             "",
		"set k 0 0 1 ":      "set|k|0|0|1",
		"k\x7f\xff é":       "k\x7f\xff|é",
	} {
		w := wire{line: []byte(line)}
		for range 2 { // the table of words is used again
			w.split()
			var words []string
			for _, word := range w.words {
				words = append(words, string(word))
			}
			require.Equal(t, want, strings.Join(words, "|"), "%q", line)
		}
	}
}
