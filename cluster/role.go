package cluster

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"gotycoon/cluster/election"
	"gotycoon/internal/klog"
)

// trying notes why this member waits. The log gets each new reason once.
func (n *Node) trying(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if n.role == Waiting {
		n.trouble = text
	}
	n.tellOnce(text)
}

// tell puts trouble into the log, each new one once.
func (n *Node) tell(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tellOnce(err.Error())
}

// tellOnce is tell for holders of mu.
func (n *Node) tellOnce(text string) {
	if kind := shape(text); kind != n.told {
		if n.told = kind; text != "" {
			n.opts.Logger.Warn("cluster: " + text)
		}
	}
}

// shape returns a text without its numbers: the log needs no line for each step of a progress.
func shape(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
}

// become changes the role. mu is held.
func (n *Node) become(role Role, term uint64) {
	if n.role == role && n.term == term {
		return
	}
	n.role, n.term, n.since, n.heard = role, term, time.Now(), ""
	acts := uint64(0)
	if role == Opening || role == Leading || role == Draining {
		acts = term
	}
	n.acts.Store(acts)
	n.view.Store(n.viewLocked())
	if role != Waiting {
		n.trouble = ""
	}
	whom := ""
	if role == Following {
		whom = " " + n.View().Primary.Name
	}
	n.opts.Logger.Log(n.ctx, klog.LevelSystem, fmt.Sprintf("cluster: this member is %s%s (term %d)", role, whom, term))
	select {
	case n.news <- struct{}{}:
	default:
	}
}

// stepDown ends whatever this member does as the primary. mu is held.
func (n *Node) stepDown(reason error) {
	if !n.active() {
		return
	}
	n.acts.Store(0) // first: a stream of the next epoch must not say this term
	n.epoch.Add(1)
	n.led.Store(0)
	n.stricter, n.unsettled = nil, false
	if n.cease != nil {
		n.cease()
		n.cease = nil
	}
	n.opts.Logger.Warn("cluster: this member steps down as the primary: " + reason.Error())
	n.opts.Data.StepDown(fmt.Errorf("%w: %w", ErrNotPrimary, reason))
	n.become(Waiting, n.term)
	n.trouble = reason.Error()
}

// fail tells of an error after which only a new start helps. A member that was removed, or has
// forgotten what it agreed to, goes on to answer reads: a new start changes nothing.
func (n *Node) fail(err error) {
	if errors.Is(err, election.ErrRemoved) || errors.Is(err, election.ErrLost) || errors.Is(err, election.ErrClosed) {
		return
	}
	n.failing.Do(func() {
		n.failure = err
		close(n.failed)
	})
}

// Failed is closed when this member can take part no more until it is started again, since its disk
// has failed for example. Then Err returns why.
func (n *Node) Failed() <-chan struct{} { return n.failed }

// Err returns why Failed is closed.
func (n *Node) Err() error { return n.failure }
