package compat

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

var contentLength = regexp.MustCompile(`(?m)^Content-Length: [^\r]*`)

// matches compares what a step received, in the step's mode. The steps of a group are compared
// together at the end.
func (k clock) matches(s *goldenStep, got string) bool {
	want := maskHeaders(string(*s.Recv))
	got = maskHeaders(got)
	switch s.Cmp {
	case "skip", "walk", "status-one-of":
		return true
	case "", "exact":
		return k.match(want, got)
	}
	wantHead, wantRows := parseTSV(want)
	gotHead, gotRows := parseTSV(got)
	if wantHead != gotHead || !sameKeys(wantRows, gotRows) {
		return false
	}
	switch prefix, isRows := strings.CutPrefix(s.Cmp, "rows:"); {
	case s.Cmp == "keys":
		return true
	case s.Cmp == "set":
		return wantRows["num"] == gotRows["num"]
	case isRows:
		return sameValues(wantRows, gotRows, prefix)
	}
	return false // an unknown mode
}

// parseTSV takes a response apart into its head, without the length, and its rows.
func parseTSV(s string) (head string, rows map[string]string) {
	head, body, _ := strings.Cut(s, "\r\n\r\n")
	rows = map[string]string{}
	for line := range strings.SplitSeq(body, "\n") {
		if name, value, ok := strings.Cut(line, "\t"); ok {
			rows[name] = value
		}
	}
	return contentLength.ReplaceAllLiteralString(head, "Content-Length: *"), rows
}

func sameKeys(a, b map[string]string) bool {
	return slices.Equal(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b)))
}

func sameValues(want, got map[string]string, prefix string) bool {
	for name, value := range want {
		if strings.HasPrefix(name, prefix) && got[name] != value {
			return false
		}
	}
	return true
}

// group is the answers of a case that are compared as a multiset.
type group struct{ want, got []string }

// add notes a reply; part extracts the part of the reply that is compared.
func (g *group) add(want, got string, part func(string) string) {
	g.want = append(g.want, part(maskHeaders(want)))
	g.got = append(g.got, part(maskHeaders(got)))
}

func (g *group) equal() bool {
	slices.Sort(g.want)
	slices.Sort(g.got)
	return slices.Equal(g.want, g.got)
}

func whole(s string) string { return s }

// statusOf returns the status code of a response.
func statusOf(s string) string {
	if len(s) < 12 {
		return ""
	}
	return s[9:12]
}
