package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gotycoon/cluster"
)

// leaderEvery is how often a member that does not lead looks at the one that does.
const leaderEvery = time.Second

// doubtfulLooks is how many looks in a row find no primary before that is told: a change of the
// primary takes a moment, which nobody needs to hear of.
const doubtfulLooks = 2

// leaderWatch looks at the member that leads the vote. It may lead and not be the primary, while
// too few followers are there for example. A member that follows it does not see that by itself.
type leaderWatch struct {
	node *clusterNode

	mu       sync.Mutex // alone
	trouble  string     // why the leader is not the primary; empty: it is, or nobody leads
	doubtful int        // looks in a row with trouble
}

// look asks the leader whether it is the primary.
func (w *leaderWatch) look() {
	f, trouble := w.node.Figures(), ""
	if f.Leader != "" && f.Leader != w.node.self.Name {
		ctx, cancel := context.WithTimeout(context.Background(), leaderEvery)
		defer cancel()
		switch s, err := w.node.Ask(ctx, f.Leader); {
		case err != nil:
			trouble = f.Leader + " leads the vote and does not answer this server"
		case s.Role != cluster.Leading && s.Role != cluster.Draining:
			trouble = because(fmt.Sprintf("%s leads the vote and is %s", f.Leader, s.Role), s.Trouble)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble = trouble; trouble == "" {
		w.doubtful = 0
	} else {
		w.doubtful++
	}
}

// told returns why the leader is not the primary, if that has lasted; empty: it is.
func (w *leaderWatch) told() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.doubtful < doubtfulLooks {
		return ""
	}
	return w.trouble
}

// because adds a reason to a text, if one is known.
func because(text, why string) string {
	if why == "" {
		return text
	}
	return text + ": " + why
}
