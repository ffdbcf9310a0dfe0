package db

import (
	"gotycoon/db/keymatch"
	"gotycoon/db/owed"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRegexAnswersLikeTheOriginal replays the recorded match_regex calls on the keys stored before.
func TestRegexAnswersLikeTheOriginal(t *testing.T) {
	seen := 0
	for _, c := range mustReadGolden(t, "http/09-rpc-match.jsonl") {
		var keys []string
		for _, s := range append(c.Setup, c.Steps...) {
			in := s.inputs(t)
			switch s.procedure() {
			case "set":
				keys = append(keys, in["key"])
			case "set_bulk":
				for row := range in {
					keys = append(keys, row[1:])
				}
			case "match_regex":
				if in["max"] != "" {
					continue
				}
				seen++
				requireMatches(t, c.Name, in["regex"], keys, s.outputs(t))
			}
		}
	}
	require.Greater(t, seen, 30)
}

func requireMatches(t *testing.T, name, pattern string, keys []string, want map[string]string) {
	t.Helper()
	match, err := keymatch.Matcher(new(owed.Heeding), pattern)
	if want["ERROR"] != "" {
		require.EqualError(t, err, strings.TrimPrefix(want["ERROR"], "DB: "), name)
		return
	}
	require.NoError(t, err, name)
	for _, key := range keys {
		_, matched := want["_"+key]
		require.Equal(t, matched, match([]byte(key)), "%s: %q", name, key)
	}
}
