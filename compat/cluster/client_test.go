package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"gotycoon/compat/history"
)

// play is the clients of one act, and what they have been told.
type play struct {
	cluster *cluster
	name    string // begins all keys
	began   time.Time

	mu      sync.Mutex
	members []*member // those that clients know
	hint    *member   // the one that has acknowledged last

	stop context.CancelFunc
	wg   sync.WaitGroup

	clients []*asker
	ledgers []*ledger
	probe   *probe
	issuers map[string][]*issuer // by service
}

const (
	askLimit = time.Second // of one request
	// waitLimit is for clients that are still there when a paused server goes on.
	waitLimit = 8 * time.Second
)

// generation is how long clients use the same keys: few requests of unknown outcome are then on one
// key, each of which doubles the work of the check.
const generation = time.Second

// start begins the load of one act.
func start(c *cluster, name string, seed uint64) *play {
	ctx, stop := context.WithCancel(context.Background())
	p := &play{cluster: c, name: name, began: time.Now(), members: c.data(), hint: c.data()[0], stop: stop}
	for i := range 3 * len(history.Protocols) {
		a := &asker{play: p, id: i, protocol: history.Protocols[i%len(history.Protocols)], limit: askLimit, rnd: rand.New(rand.NewPCG(seed, uint64(i)))}
		if i >= len(history.Protocols) {
			a.limit = waitLimit
		}
		a.lazy = i >= 2*len(history.Protocols)
		p.clients = append(p.clients, a)
		p.wg.Go(func() { a.run(ctx) })
	}
	for i := range 2 {
		l := &ledger{play: p, id: i, sure: map[string]bool{}}
		p.ledgers = append(p.ledgers, l)
		p.wg.Go(func() { l.run(ctx) })
	}
	p.startIssuers(ctx)
	p.probe = &probe{play: p}
	p.wg.Go(func() { p.probe.run(ctx) })
	return p
}

// end waits for all clients.
func (p *play) end() {
	p.stop()
	p.wg.Wait()
}

// learn has the clients know other members from now on.
func (p *play) learn(members []*member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.members = slices.Clone(members)
}

// pick returns a member that may be the primary.
func (p *play) pick(n int) *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n%3 > 0 {
		return p.hint
	}
	return p.members[n/3%len(p.members)]
}

// each returns one member after the other.
func (p *play) each(n int) *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.members[n%len(p.members)]
}

// primary returns the member that is the primary as far as clients know.
func (p *play) primary() *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hint
}

// acknowledged notes which member has carried out an update.
func (p *play) acknowledged(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hint = m
}

// asker is a client of one protocol.
type asker struct {
	play     *play
	id       int
	protocol history.Protocol
	limit    time.Duration
	lazy     bool // it asks a server that was paused meanwhile, or is not the primary any more
	rnd      *rand.Rand

	wire   history.Wire // nil: none
	at     *member      // where it leads
	count  int
	events []history.Event
}

func (a *asker) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := time.Duration(a.rnd.IntN(4)) * time.Millisecond
		if a.lazy {
			pause = time.Duration(a.rnd.IntN(5000)) * time.Millisecond
		}
		if a.wire == nil && !a.connect() || !a.turn() {
			pause += 10 * time.Millisecond
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	a.hangUp()
}

// connect makes a connection that has carried out an update: what is read by it is the primary's.
func (a *asker) connect() bool {
	a.at = a.play.pick(a.rnd.IntN(99))
	w, err := a.protocol.Dial(a.at.reach(), a.limit)
	if err != nil {
		return false
	}
	if w.Ask(history.Call{Verb: history.Set, Key: fmt.Sprintf("client-%d", a.id), Value: "here"}).Certainty != history.Done {
		w.Close()
		return false
	}
	a.wire = w
	a.play.acknowledged(a.at)
	return true
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
	if a.ask(c).Certainty != history.Done {
		return false
	}
	if a.rnd.IntN(200) == 0 {
		a.hangUp()
	}
	return true
}

// choose returns the next request. A key is a text that all protocols change, a counter of
// procedures, or a number of memcached.
func (a *asker) choose() history.Call {
	a.count++
	kind := []string{"text", "text", "text", "counter", "decimal"}[a.rnd.IntN(5)]
	c := history.Call{Key: a.play.key(kind, a.rnd.IntN(2)), By: 1 + a.rnd.IntN(9)}
	verbs := map[string][]history.Verb{
		"text":    {history.Get, history.Set, history.Get, history.Cas, history.Remove, history.Set, history.Cas},
		"counter": {history.Get, history.Incr, history.Bump, history.Incr, history.Remove},
		"decimal": {history.Get, history.Set, history.Bump, history.Bump, history.Remove},
	}[kind]
	c.Verb = verbs[a.rnd.IntN(len(verbs))]
	fits := a.wire.Can(c.Verb) && (kind != "decimal" || c.Verb != history.Bump || a.protocol.Name == "memcached") &&
		(kind != "counter" || c.Verb != history.Bump || a.protocol.Name == "rpc")
	if !fits || a.lazy && a.rnd.IntN(4) > 0 {
		c.Verb = history.Get
	}
	c.Value = fmt.Sprintf("%d-%d", a.id, a.count)
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
	began := time.Since(a.play.began)
	r := a.wire.Ask(c)
	e := history.Event{Call: c, Reply: r, Began: began, Over: time.Since(a.play.began), Client: a.id, Where: fmt.Sprintf("%s@%d", a.protocol.Name, a.at.index)}
	a.events = append(a.events, e)
	if r.Certainty != history.Done {
		a.hangUp()
	}
	return r
}
