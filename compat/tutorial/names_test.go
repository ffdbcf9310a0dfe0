package tutorial

import "regexp"

// replacer replaces names one after the other.
type replacer struct {
	patterns []*regexp.Regexp
	by       []string
}

// rename makes a name in the document stand for another. border is an expression for what is around both.
func (s *shell) rename(border, written, inUse string) {
	s.names.add(border, written, inUse)
	s.back.add(border, inUse, written)
}

func (r *replacer) add(border, from, to string) {
	r.patterns = append(r.patterns, regexp.MustCompile(border+regexp.QuoteMeta(from)+border))
	r.by = append(r.by, to)
}

// Replace replaces the names in a text.
func (r *replacer) Replace(text string) string {
	for i, p := range r.patterns {
		text = p.ReplaceAllLiteralString(text, r.by[i])
	}
	return text
}
