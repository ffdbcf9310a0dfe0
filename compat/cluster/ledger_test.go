package cluster

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/compat/history"
)

// ledger is a client that sets keys of its own, each once, as fast as it can.
type ledger struct {
	play *play
	id   int
	n    int
	sure map[string]bool // the keys; false: the outcome is unknown
}

func (l *ledger) run(ctx context.Context) {
	var w history.Wire
	var at *member
	for ctx.Err() == nil {
		if w == nil {
			at = l.play.pick(l.n)
			var err error
			if w, err = history.Protocols[l.n%len(history.Protocols)].Dial(at.reach(), askLimit); err != nil {
				l.n++
				wait(ctx, 10*time.Millisecond)
				continue
			}
		}
		l.n++
		key := fmt.Sprintf("%s-ledger-%d-%d", l.play.name, l.id, l.n)
		r := w.Ask(history.Call{Verb: history.Set, Key: key, Value: key})
		switch r.Certainty {
		case history.Done:
			l.sure[key] = true
			l.play.acknowledged(at)
			continue
		case history.Unknown:
			l.sure[key] = false
		}
		w.Close()
		w = nil
		wait(ctx, 5*time.Millisecond)
	}
	if w != nil {
		w.Close()
	}
}

// wait returns after a time, or when the context ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// acknowledged returns how many keys there must be.
func (l *ledger) acknowledged() (n int) {
	for _, sure := range l.sure {
		if sure {
			n++
		}
	}
	return n
}

// check fails the test when something that was acknowledged is not there, or something that was
// refused is.
func (l *ledger) check(t *testing.T, has map[string]string) {
	t.Helper()
	var lost []string
	for key, sure := range l.sure {
		if sure && has[key] != key {
			lost = append(lost, key)
		}
	}
	if len(lost) > 0 {
		t.Errorf("%d of %d acknowledged updates are lost, such as %v", len(lost), len(l.sure), lost[:min(5, len(lost))])
	}
}

// probe writes every few milliseconds to whichever member takes it, and measures for how long none
// did.
type probe struct {
	play *play

	mu   sync.Mutex
	last time.Time // of the latest acknowledgement
	most time.Duration
}

const probeEvery = 5 * time.Millisecond

func (p *probe) run(ctx context.Context) {
	var w *history.HTTP
	at := 0
	for n := 0; ctx.Err() == nil; n++ {
		if w == nil {
			var err error
			if w, err = history.DialHTTP(p.play.each(at).port, askLimit); err != nil {
				at++
				wait(ctx, probeEvery)
				continue
			}
		}
		if r := w.Ask(history.Call{Verb: history.Set, Key: "probe", Value: fmt.Sprint(n)}); r.Certainty == history.Done {
			p.mark(time.Now())
		} else {
			w.Close()
			w = nil
			at++
		}
		wait(ctx, probeEvery)
	}
	if w != nil {
		w.Close()
	}
}

func (p *probe) mark(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() {
		p.most = max(p.most, now.Sub(p.last))
	}
	p.last = now
}

// reset begins a new measurement, and gap returns the longest time without an acknowledgement in it.
func (p *probe) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = 0
}

func (p *probe) gap() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most
}

// since reports whether there was an acknowledgement since a time.
func (p *probe) since(at time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last.After(at)
}

// patience is how long a cluster may take to serve once nothing is wrong any more, and to become the
// same on all members.
const patience = 45 * time.Second

// serves waits until an update is acknowledged. It starts members of all again that a full disk has
// ended meanwhile.
func (p *play) serves(t *testing.T, all ...*member) {
	t.Helper()
	now := time.Now()
	require.True(t, eventually(patience, func() bool {
		for _, m := range all {
			m.revive()
		}
		return p.probe.since(now)
	}), "nothing is wrong any more, and nobody has taken an update for %v", patience)
}

func eventually(limit time.Duration, condition func() bool) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) { //lint:sleep other processes can only be polled
		if condition() {
			return true
		}
	}
	return false
}

// sameEverywhere waits until all members with data have the same, and returns it.
func sameEverywhere(t *testing.T, all []*member) map[string]string {
	t.Helper()
	var first map[string]string
	var differs string
	same := eventually(patience, func() bool {
		for i, m := range all {
			has, err := m.contents(t.Context())
			switch {
			case err != nil:
				differs = fmt.Sprintf("member %d: %v", m.index, err)
				m.revive()
				return false
			case i == 0:
				first = has
			case !maps.Equal(first, has):
				differs = fmt.Sprintf("the members %d and %d: %s", all[0].index, m.index, difference(first, has))
				return false
			}
		}
		return true
	})
	if !same {
		t.Fatalf("after %v the members have not the same: %s", patience, differs)
	}
	return first
}

func difference(a, b map[string]string) string {
	text := fmt.Sprintf("%d and %d records", len(a), len(b))
	shown := 0
	for key := range maps.Keys(a) {
		if v, ok := b[key]; (!ok || v != a[key]) && shown < 5 {
			shown++
			text += fmt.Sprintf("; %s: %q and %q", key, a[key], v)
		}
	}
	for key := range maps.Keys(b) {
		if _, ok := a[key]; !ok && shown < 10 {
			shown++
			text += fmt.Sprintf("; %s: none and %q", key, b[key])
		}
	}
	return text
}

// contents are all records.
func (m *member) contents(ctx context.Context) (map[string]string, error) {
	c := client.New(m.addr(), client.Options{Timeout: 10 * time.Second})
	defer c.Close()
	has := map[string]string{}
	for r, err := range c.DB("").All(ctx) {
		if err != nil {
			return nil, err
		}
		has[r.Key] = history.Number(string(r.Value))
	}
	return has, nil
}
