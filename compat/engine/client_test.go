package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/history"
)

const (
	askLimit = 2 * time.Second // of one request
	// waitLimit is for clients that are still there when a paused server goes on.
	waitLimit = 8 * time.Second
	// generation is how long clients use the same keys, of which there are so many of a kind: few
	// requests of unknown outcome are then on one key, each of which doubles the work of the check.
	generation = 500 * time.Millisecond
	sorts      = 3
	// clients is how many there are of each protocol.
	clients = 5
)

// play is the clients of one act, and what they have been told.
type play struct {
	stage   *stage
	name    string // begins all keys
	began   time.Time
	stop    context.CancelFunc
	wg      sync.WaitGroup
	askers  []*asker
	ledgers []*ledger
	bank    *bank
}

// start begins the load of one act.
func (s *stage) start(name string) *play {
	s.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	p := &play{stage: s, name: name, began: time.Now(), stop: stop, bank: &bank{stage: s}}
	s.play = p
	for i := range clients * len(history.Protocols) {
		a := &asker{play: p, id: i, protocol: history.Protocols[i%len(history.Protocols)], limit: askLimit, rnd: s.random()}
		if i < len(history.Protocols) {
			a.limit = waitLimit
		}
		p.askers = append(p.askers, a)
		p.wg.Go(func() { a.run(ctx) })
	}
	for i := range 2 {
		l := &ledger{play: p, id: i, rnd: s.random(), sure: map[string]bool{}}
		p.ledgers = append(p.ledgers, l)
		p.wg.Go(func() { l.run(ctx) })
	}
	b := p.bank
	rnd := s.random()
	require.True(s.t, eventually(soon, func() bool {
		w, err := history.DialHTTP(s.servers[0].ports.Main, askLimit)
		if err != nil {
			return false
		}
		defer w.Close()
		return b.share(w, rnd)
	}))
	for range 2 {
		mover, observer := s.random(), s.random()
		p.wg.Go(func() {
			b.run(ctx, mover, &b.moves, 20*time.Millisecond, func(w *history.HTTP) bool { return b.move(w, mover) })
		})
		p.wg.Go(func() { b.run(ctx, observer, &b.looks, 2*time.Millisecond, b.look) })
	}
	p.wg.Go(func() {
		b.run(ctx, rnd, &b.bulks, 10*time.Millisecond, func(w *history.HTTP) bool { return b.share(w, rnd) })
	})
	return p
}

func (s *stage) random() *rand.Rand { return rand.New(rand.NewPCG(s.rnd.Uint64(), 0)) }

// asker is a client of one protocol.
type asker struct {
	play     *play
	id       int
	protocol history.Protocol
	limit    time.Duration
	rnd      *rand.Rand

	wire   history.Wire // nil: none
	at     *server      // where it leads
	count  int
	events []history.Event
}

func (a *asker) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := time.Duration(a.rnd.IntN(8)) * time.Millisecond
		if a.wire == nil {
			a.at = a.play.stage.servers[a.rnd.IntN(len(a.play.stage.servers))]
			w, err := a.protocol.Dial(a.at.ports, a.limit)
			if err != nil {
				wait(ctx, pause+10*time.Millisecond)
				continue
			}
			a.wire = w
		}
		if !a.turn() {
			pause += 10 * time.Millisecond
		}
		if a.rnd.IntN(100) == 0 {
			a.hangUp()
		}
		wait(ctx, pause)
	}
	a.hangUp()
}

func (a *asker) hangUp() {
	if a.wire != nil {
		a.wire.Close()
		a.wire = nil
	}
}

// turn makes one request, or two, and reports whether all were answered.
func (a *asker) turn() bool {
	c := a.choose()
	if c.Verb == history.Cas {
		r := a.ask(history.Call{Verb: history.Get, Key: c.Key})
		if r.Certainty != history.Done {
			return false
		}
		switch c.Old = r.Value; {
		case c.Old == "" && a.protocol.Name == "memcached":
			c.Verb = history.Set
		case a.rnd.IntN(5) == 0 && a.protocol.Name != "memcached":
			c.Old = "other"
		}
	}
	return a.ask(c).Certainty == history.Done
}

// choose returns the next request. A key is a text that all protocols change, a counter of
// procedures, or a number of memcached.
func (a *asker) choose() history.Call {
	a.count++
	kind := []string{"text", "text", "text", "counter", "decimal"}[a.rnd.IntN(5)]
	c := history.Call{Key: a.play.key(kind, a.rnd.IntN(sorts)), By: 1 + a.rnd.IntN(9)}
	verbs := map[string][]history.Verb{
		"text": {
			history.Get, history.Set, history.Get, history.Cas, history.Remove, history.Set, history.Cas, history.Add, history.Append,
		},
		"counter": {history.Get, history.Incr, history.Bump, history.Incr, history.Remove},
		"decimal": {history.Get, history.Set, history.Bump, history.Bump, history.Remove, history.Add},
	}[kind]
	c.Verb = verbs[a.rnd.IntN(len(verbs))]
	fits := a.wire.Can(c.Verb) && (kind != "decimal" || c.Verb != history.Bump || a.protocol.Name == "memcached") &&
		(kind != "counter" || c.Verb != history.Bump || a.protocol.Name == "rpc")
	if !fits {
		c.Verb = history.Get
	}
	c.Value = fmt.Sprintf("%d-%d,", a.id, a.count)
	if kind == "decimal" {
		c.Value = strconv.Itoa(a.id*1_000_000 + a.count*10)
	}
	return c
}

// key returns a key of the present generation.
func (p *play) key(kind string, n int) string {
	return fmt.Sprintf("%s-%s-%d-%d", p.name, kind, time.Since(p.began)/generation, n)
}

// ask makes a request and notes what can be relied on.
func (a *asker) ask(c history.Call) history.Reply {
	e := history.Event{Call: c, Client: a.id, Where: fmt.Sprintf("%s@%d", a.protocol.Name, a.at.index), Began: time.Since(a.play.began)}
	e.Reply = a.wire.Ask(c)
	e.Over = time.Since(a.play.began)
	a.events = append(a.events, e)
	if e.Reply.Certainty != history.Done {
		a.hangUp()
	}
	return e.Reply
}

// ledger is a client that sets keys of its own, each once.
type ledger struct {
	play *play
	id   int
	rnd  *rand.Rand
	sure map[string]bool // the keys; false: the outcome is unknown
}

func (l *ledger) run(ctx context.Context) {
	var w history.Wire
	for n := 0; ctx.Err() == nil; n++ {
		if w == nil {
			at := l.play.stage.servers[l.rnd.IntN(len(l.play.stage.servers))]
			var err error
			if w, err = history.Protocols[l.rnd.IntN(len(history.Protocols))].Dial(at.ports, askLimit); err != nil {
				w = nil
				wait(ctx, 10*time.Millisecond)
				continue
			}
		}
		key := fmt.Sprintf("%s-ledger-%d-%d", l.play.name, l.id, n)
		r := w.Ask(history.Call{Verb: history.Set, Key: key, Value: key})
		if r.Certainty != history.Refused {
			l.sure[key] = r.Certainty == history.Done
		}
		if r.Certainty != history.Done {
			w.Close()
			w = nil
		}
		wait(ctx, 2*time.Millisecond)
	}
	if w != nil {
		w.Close()
	}
}

// tally counts what was checked.
type tally struct{ requests, doubted, acknowledged, moves, bulks, looks int64 }

func (y *tally) String() string {
	return fmt.Sprintf("%d requests (%d of unknown outcome), %d updates in ledgers, %d moves and %d bulks of money, looked at %d times",
		y.requests, y.doubted, y.acknowledged, y.moves, y.bulks, y.looks)
}

// judge checks what the clients were told. They have ended.
func (p *play) judge(t *testing.T, total *tally) {
	t.Helper()
	p.checkLedgers(t, total)
	var events []history.Event
	keys := map[string]string{}
	for _, a := range p.askers {
		events = append(events, a.events...)
		for _, e := range a.events {
			keys[e.Call.Key] = ""
		}
	}
	for _, v := range p.stage.servers { // what is there in the end is a last read
		now := time.Since(p.began)
		p.stage.read(v, keys)
		for key, value := range keys {
			r := history.Reply{Certainty: history.Done, Value: value, OK: value != ""}
			events = append(events, history.Event{
				Call: history.Call{Verb: history.Get, Key: key}, Reply: r, Began: now, Over: time.Since(p.began), Client: 1000 + v.index, Where: "at the end",
			})
		}
	}
	requests, doubted := history.Check(t, events)
	total.requests += int64(requests)
	total.doubted += int64(doubted)
	b := p.bank
	if wrong := b.wrong.Load(); wrong != nil {
		t.Error(*wrong)
	}
	total.moves += b.moves.Load()
	total.bulks += b.bulks.Load()
	total.looks += b.looks.Load()
}

// checkLedgers fails the test when something that was acknowledged is not there.
func (p *play) checkLedgers(t *testing.T, total *tally) {
	t.Helper()
	has, lost := map[string]string{}, []string{}
	for _, l := range p.ledgers {
		for key, sure := range l.sure {
			if sure {
				has[key] = ""
			}
		}
	}
	total.acknowledged += int64(len(has))
	p.stage.read(p.stage.any(), has)
	for key, value := range has {
		if value != key {
			lost = append(lost, key)
		}
	}
	if len(lost) > 0 {
		t.Errorf("%d of %d acknowledged updates are lost, such as %v", len(lost), len(has), lost[:min(5, len(lost))])
	}
}

// read fills in the values of keys, as a server has them; "" where there is no record.
func (s *stage) read(v *server, keys map[string]string) {
	s.t.Helper()
	w, err := history.DialHTTP(v.ports.Main, soon)
	require.NoError(s.t, err)
	defer w.Close()
	fields := []string{}
	for key := range keys {
		fields = append(fields, "_"+key, "")
	}
	for len(fields) > 0 {
		n := min(len(fields), 2000)
		status, out, err := w.Procedure("get_bulk", soon, fields[:n]...)
		require.NoError(s.t, err)
		require.Equal(s.t, 200, status, "%v", out)
		for i := 0; i < n; i += 2 {
			keys[fields[i][1:]] = history.Number(out[fields[i]])
		}
		fields = fields[n:]
	}
}
