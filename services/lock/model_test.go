package lock

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// model is a lock server as simple as can be: one list of requests for each key, in the order of
// their arrival.
type model struct {
	keys  map[string][]*modelRequest
	lines map[int]string // for each session
	o     bounds
}

type modelRequest struct {
	session       int
	holds, fenced bool
	max, expires  int
	when          int64 // 0: never
}

func (m *model) counts(key string) (holders, waiters int) {
	for _, r := range m.keys[key] {
		if r.holds {
			holders++
		} else {
			waiters++
		}
	}
	return holders, waiters
}

func (m *model) tell(session int, word, key string, more ...any) {
	g, w := m.counts(key)
	m.lines[session] += strings.TrimSpace(fmt.Sprintln(append([]any{word, g, w, key}, more...)...)) + "\n"
}

func (m *model) told(r *modelRequest, word, key string) {
	if r.fenced {
		m.tell(r.session, word, key, r.expires, "TOKEN")
	} else {
		m.tell(r.session, word, key, r.expires)
	}
}

func (m *model) find(session int, key string) *modelRequest {
	for _, r := range m.keys[key] {
		if r.session == session {
			return r
		}
	}
	return nil
}

func (m *model) remove(key string, r *modelRequest) {
	m.keys[key] = slices.DeleteFunc(m.keys[key], func(x *modelRequest) bool { return x == r })
}

func (m *model) fits(key string, r *modelRequest) bool {
	g, _ := m.counts(key)
	for _, other := range m.keys[key] {
		if other.holds && g+1 > other.max {
			return false
		}
	}
	return g+1 <= r.max
}

// scan grants to the oldest that fits until nobody fits.
func (m *model) scan(key string, now int64) {
	var lapsed []int
	for again := true; again; {
		again = false
		for _, r := range m.keys[key] {
			if r.holds {
				continue
			}
			if m.fits(key, r) {
				if m.enter(key, r, now) {
					lapsed = append(lapsed, r.session)
				}
				again = true
				break
			}
			if m.o.strict {
				break
			}
		}
	}
	for _, s := range lapsed {
		m.tell(s, "EXPIRED", key)
	}
}

func (m *model) enter(key string, r *modelRequest, now int64) (lapsed bool) {
	if r.expires == 0 {
		m.remove(key, r)
		m.tell(r.session, "RELEASED", key)
		return true
	}
	r.holds, r.when = true, now+int64(r.expires)*second
	m.told(r, "GRANTED", key)
	return false
}

func (m *model) lock(session int, key string, w wish, now int64) {
	w.expires = min(w.expires, m.o.expires)
	r := m.find(session, key)
	if r == nil {
		r = &modelRequest{session: session}
		if w.timeout > 0 {
			r.when = now + int64(w.timeout)*second
		}
		m.keys[key] = append(m.keys[key], r)
		r.max, r.expires, r.fenced = int(w.max), int(w.expires), w.fenced
		m.scan(key, now)
		if w.timeout == 0 && !r.holds && r.expires >= 0 && m.find(session, key) != nil {
			m.remove(key, r)
			m.tell(session, "TIMEOUT", key)
			m.scan(key, now)
		}
		return
	}
	r.max, r.expires, r.fenced = int(w.max), int(w.expires), w.fenced
	if r.holds {
		m.prolong(r, key, now, "GRANTED")
	}
	m.scan(key, now)
}

func (m *model) prolong(r *modelRequest, key string, now int64, word string) {
	if r.expires == 0 {
		m.expire(key, r, now)
		return
	}
	r.when = now + int64(r.expires)*second
	m.told(r, word, key)
}

func (m *model) expire(key string, r *modelRequest, now int64) {
	m.remove(key, r)
	m.tell(r.session, "RELEASED", key)
	m.scan(key, now)
	m.tell(r.session, "EXPIRED", key)
}

func (m *model) release(session int, key string, now int64) {
	r := m.find(session, key)
	if r == nil || !r.holds {
		m.tell(session, "NOT_RELEASED", key)
		return
	}
	m.remove(key, r)
	m.tell(session, "RELEASED", key)
	m.scan(key, now)
}

func (m *model) renew(session int, key string, expires int, now int64) {
	r := m.find(session, key)
	if r == nil || !r.holds {
		m.tell(session, "NOT_RENEWED", key)
		return
	}
	if expires >= 0 {
		r.expires = min(expires, int(m.o.expires))
	}
	m.prolong(r, key, now, "RENEWED")
}

func (m *model) cancel(session int, key string, now int64) {
	r := m.find(session, key)
	if r == nil || r.holds {
		m.tell(session, "NOT_CANCELLED", key)
		return
	}
	m.remove(key, r)
	m.tell(session, "CANCELLED", key)
	m.scan(key, now)
}

func (m *model) cancelOf(session int, key string, other int, now int64) {
	r := m.find(other, key)
	switch {
	case r == nil:
		m.tell(session, "NOT_CANCELLED", key)
		return
	case r.holds:
		m.expire(key, r, now)
	default:
		m.remove(key, r)
		if other != session {
			m.tell(other, "TIMEOUT", key)
		}
		m.scan(key, now)
	}
	m.tell(session, "CANCELLED", key)
}

func (m *model) disconnect(session int, now int64) {
	for key := range m.keys {
		if r := m.find(session, key); r != nil {
			m.remove(key, r)
			m.scan(key, now)
		}
	}
}

// pass does what is due; no two requests are due at the same time.
func (m *model) pass(now int64) {
	for {
		var due *modelRequest
		var of string
		for key, rs := range m.keys {
			for _, r := range rs {
				if r.when != 0 && r.when <= now && (due == nil || r.when < due.when) {
					due, of = r, key
				}
			}
		}
		switch {
		case due == nil:
			return
		case due.holds:
			m.expire(of, due, now)
		default:
			m.remove(of, due)
			m.tell(due.session, "TIMEOUT", of)
			m.scan(of, now)
		}
	}
}

const modelSessions = 5

// world is the table and its model.
type world struct {
	table    *table
	model    *model
	sessions []*session
	now      int64
}

func newWorld(t require.TestingT, strict bool) *world {
	tk := newTokens(&fakeFences{}, nil, nil)
	require.NoError(t, tk.Lead())
	b := bounds{keys: 1000, names: 1 << 20, waiters: 1000, expires: 9, strict: strict}
	w := &world{table: newTable(b, tk), model: &model{keys: map[string][]*modelRequest{}, lines: map[int]string{}, o: b}}
	for i := range modelSessions {
		w.sessions = append(w.sessions, &session{address: fmt.Sprint(i), push: func() {}})
	}
	return w
}

// act does one random thing in both.
func (w *world) act(n func(limit int) int) {
	w.now++ // so that no two requests are due at once
	i, other := n(modelSessions), n(modelSessions)
	key := string(rune('a' + n(3)))
	st := &step{now: w.now, by: w.sessions[i]}
	switch n(10) {
	case 0, 1, 2, 3:
		wish := wish{int32(1 + n(4)), int32(n(5) - 1), int32(n(12)), n(2) == 0}
		w.table.lock(st, []byte(key), wish)
		w.model.lock(i, key, wish, w.now)
	case 4, 5:
		w.table.release(st, []byte(key))
		w.model.release(i, key, w.now)
	case 6:
		expires := n(8) - 1
		w.table.renew(st, []byte(key), int32(expires))
		w.model.renew(i, key, expires, w.now)
	case 7:
		if n(2) == 0 {
			w.table.cancel(st, []byte(key))
			w.model.cancel(i, key, w.now)
		} else {
			w.table.cancelOf(st, []byte(key), fmt.Sprint(other))
			w.model.cancelOf(i, key, other, w.now)
		}
	case 8:
		if n(4) == 0 {
			w.table.end(st, w.sessions[i], false)
			w.model.disconnect(i, w.now)
		}
	case 9:
		w.now += int64(n(3)) * second
		w.table.pass(&step{now: w.now})
		w.model.pass(w.now)
	}
}

// ofKeys sorts lines by key, and hides tokens. The order of what comes at once for several keys is
// free.
func ofKeys(text string) []string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if words := strings.Fields(line); len(words) == 6 {
			lines[i] = strings.Join(append(words[:5], "TOKEN"), " ")
		}
	}
	key := func(line string) string { return strings.Fields(line + " - - - -")[3] }
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(key(a), key(b)) })
	return lines
}

func (w *world) compare(t require.TestingT) {
	for i, s := range w.sessions {
		require.Equal(t, ofKeys(w.model.lines[i]), ofKeys(string(s.own)+string(s.lines)), "session %d", i)
		w.model.lines[i], s.own = "", nil
		s.leave(nil)
	}
	holders, waiters := 0, 0
	for _, k := range w.table.statusList(byKey) {
		g, n := w.model.counts(k.name)
		require.Equal(t, []int{g, n}, []int{k.holders, k.waiters}, k.name)
		holders, waiters = holders+g, waiters+n
	}
	requests := 0
	for _, s := range w.sessions {
		requests += len(s.requests)
	}
	require.Equal(t, holders+waiters, requests)
	require.EqualValues(t, waiters, w.table.waiters.Load())
	require.EqualValues(t, len(w.table.statuses()), w.table.keys.Load())
}

func TestModel(t *testing.T) {
	for _, strict := range []bool{false, true} {
		rapid.Check(t, func(t *rapid.T) {
			w := newWorld(t, strict)
			n := func(limit int) int { return rapid.IntRange(0, limit-1).Draw(t, "n") }
			for range rapid.IntRange(1, 60).Draw(t, "steps") {
				w.act(n)
				w.compare(t)
			}
		})
	}
}

// Long random runs reach what short ones do not; nothing may be left behind at their end.
func TestModelInLongRuns(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 4 {
		w := newWorld(t, rnd.IntN(2) == 0)
		for range 3000 {
			w.act(rnd.IntN)
			w.compare(t)
		}
		for i, s := range w.sessions {
			w.table.end(&step{now: w.now, by: s}, s, false)
			w.model.disconnect(i, w.now)
		}
		require.Empty(t, w.table.statuses())
		require.Zero(t, w.table.waiters.Load()+w.table.keys.Load())
		for i := range w.table.shards {
			require.Empty(t, w.table.shards[i].timers.heap)
		}
	}
}
