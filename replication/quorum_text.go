package replication

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// missing says how many of n followers are there, and what was last seen of the others. The caller
// holds mu.
func (q *Quorum) missing(n int, now time.Time) string {
	var absent []*member
	for _, m := range q.members {
		if _, here := m.here(); !here && q.eligible(m) {
			absent = append(absent, m)
		}
	}
	slices.SortFunc(absent, func(a, b *member) int { return b.seen.Compare(a.seen) })
	present := int(q.present.Load())
	text := fmt.Sprintf("%d there, %d missing", present, max(0, n-present))
	if len(absent) == 0 {
		return text + ", and no other has been seen since the start"
	}
	const most = 5
	var seen []string
	for _, m := range absent[:min(len(absent), most)] {
		what := "gone"
		if len(m.votes) > 0 {
			what = "connected, no acknowledgement"
		}
		seen = append(seen, fmt.Sprintf("sid=%d at %s, %s for %v", m.sid, m.peer, what, now.Sub(m.seen).Round(time.Second)))
	}
	return text + "; last seen: " + strings.Join(seen, "; ")
}
