package quota

import (
	"bytes"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/services/leader"
)

// state is a quota's state between two calls. Each call that changes it writes its record.
type state struct {
	remaining int64
	journal   uint64 // the last number that was given to an apply or a cancel
	open      bool   // false: the quota was used up, or an apply was refused
}

// quota is one amount that clients take from.
//
// A call changes the state in memory and commits its records to the log, both under mu, so that the
// order in memory is the order in the log; applies of several clients share a commit (round.go).
// No call waits for the disk under mu: the connection sends the reply when the records are durable,
// and all connections that wait share one sync.
type quota struct {
	name      string
	records   *records
	fresh     state // the state of a quota that has no record
	primary   *leader.Role
	exhausted func(*quota) // called when the journals are to be exported
	failed    func(error)  // called when calls are not carried out, and cannot be told why

	mu    sync.Mutex // protects the fields below, held over the commit of a call
	state state
	term  uint64 // the term in which lead has read state from the records; 0: not yet

	open   *round     // the applies that are in state and not in the records; nil: there are none
	rounds db.Pending // of their commits
	alone  bool       // the latest commit failed: calls form no round

	wanted atomic.Bool // an export has been asked for
	// anew: the next export is made even if no journal is new, because another server may have been
	// the primary since the latest export.
	anew atomic.Bool
}

// call is one request that may change a quota.
type call struct {
	word    string      // "apply", "cancel", "increase", "decrease", "empty"
	number  int64       // amount or journal number
	id      []byte      // a repetition under the same id is recognised; empty: every call counts
	pending *db.Pending // collects what the reply acknowledges
	closes  bool        // set when the quota is used up or refuses: the journals are exported
	group   group       // the records that the call writes
}

// Reply texts, without their line feed.
const (
	refused = "-1" // a negative amount, or a sum that no number can hold
	nothing = "0"
)

// look returns the present state; a server that is not the primary returns the state that it has
// received so far. owed collects the updates that the reply has to wait for.
func (q *quota) look(owed *db.Pending) (state, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.commitRound()
	if q.lead() == nil {
		return q.state, q.seen(owed)
	}
	s, _, err := q.load()
	if err == nil {
		err = q.seen(owed)
	}
	return s, err
}

// seen lets a reply wait for the calls of other clients that it shows: they may not be durable yet.
func (q *quota) seen(owed *db.Pending) error { return q.records.Seen(owed) }

// lead returns an error if this server may not change the quota. In a new term it reads the state
// from the records, in which another server may have written since, and completes the last call
// (last.go).
func (q *quota) lead() error {
	term, err := q.primary.Term()
	if err != nil || term == q.term {
		return err
	}
	q.commitRound()
	s, _, err := q.load()
	if err == nil {
		err = q.records.complete(q)
	}
	if err == nil {
		q.state, q.term = s, term
	}
	return err
}

// load returns the state in the records; known is false if there is none.
func (q *quota) load() (s state, known bool, err error) {
	s, known, err = q.records.state(q.name)
	if !known {
		s = q.fresh
	}
	return s, known, err
}

// do carries out a call, or finds that it was carried out before, and appends the reply.
func (q *quota) do(dst []byte, c *call) ([]byte, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.lead(); err != nil {
		return dst, err
	}
	if q.forms(c) {
		return q.join(dst, c)
	}
	q.commitRound()
	if len(c.id) > 0 {
		if reply, err := q.repeated(c); reply != nil || err != nil {
			return append(dst, reply...), err
		}
	}
	before, at := q.state, len(dst)
	c.group.begin()
	dst, err := q.change(dst, c)
	if err == nil {
		err = q.commit(c, dst[at:], before)
	}
	if err != nil {
		q.state = before
		return dst[:at], err
	}
	if c.closes {
		q.export()
	}
	return dst, nil
}

// change carries out a call in memory. It appends the reply to dst, and the records of journals to
// the call's group.
func (q *quota) change(dst []byte, c *call) ([]byte, error) {
	switch c.word {
	case "apply":
		return q.apply(dst, c, &c.group), nil
	case "cancel":
		return q.cancel(dst, c)
	case "increase":
		return q.increase(dst, c.number), nil
	case "decrease":
		return q.decrease(dst, c), nil
	}
	q.state.remaining = 0
	q.close(c)
	return append(dst, nothing...), nil
}

// commit writes the records of a call as one group of the log. The reply of a call with an id is
// part of the group.
func (q *quota) commit(c *call, reply []byte, before state) error {
	g := &c.group
	if len(c.id) > 0 {
		g.reply(q, c, reply, idExpiry)
	}
	if q.state != before {
		g.state(q, c, reply)
	}
	recs := g.all()
	if len(recs) == 0 {
		return q.seen(c.pending)
	}
	_, err := q.records.SetBulk(c.pending, recs, true)
	q.alone = err != nil
	return err
}

// apply takes an amount, if there is enough, and adds the journal to a group.
func (q *quota) apply(dst []byte, c *call, g *group) []byte {
	s, amount := &q.state, c.number
	switch {
	case amount < 0:
		return append(dst, refused...)
	case !s.open && s.remaining <= 0:
		return append(dst, nothing...)
	case amount > s.remaining:
		q.close(c)
		return appendPair(dst, 0, max(s.remaining, 0))
	}
	s.remaining -= amount
	s.journal++
	s.open = true
	if s.remaining == 0 {
		q.close(c)
	}
	g.apply(q.name, s.journal, journal{amount: amount})
	return appendPair(dst, s.journal, s.remaining)
}

// close marks the quota as used up.
func (q *quota) close(c *call) { q.state.open, c.closes = false, true }

// cancel gives back what the apply with a journal number has taken.
func (q *quota) cancel(dst []byte, c *call) ([]byte, error) {
	switch {
	case c.number == 0:
		return append(dst, refused...), nil
	case c.number < 0 || uint64(c.number) > q.state.journal:
		return append(dst, nothing...), nil
	}
	number := uint64(c.number)
	j, found, err := q.records.journal(q.name, number)
	switch {
	case err != nil:
		return dst, err
	case !found || j.cancelled != 0:
		return append(dst, nothing...), nil
	case q.state.remaining > math.MaxInt64-j.amount:
		return append(dst, refused...), nil
	}
	s := &q.state
	s.journal++
	s.remaining += j.amount
	s.open = true
	j.cancelled = s.journal
	c.group.apply(q.name, number, j)
	c.group.cancel(q.name, s.journal, number)
	return appendPair(dst, s.journal, s.remaining), nil
}

// increase adds to the quota and opens it.
func (q *quota) increase(dst []byte, amount int64) []byte {
	if amount < 0 || q.state.remaining > math.MaxInt64-amount {
		return append(dst, refused...)
	}
	q.state.remaining += amount
	q.state.open = true
	return strconv.AppendInt(dst, q.state.remaining, 10)
}

// decrease takes from the quota without a journal, as much as there is.
func (q *quota) decrease(dst []byte, c *call) []byte {
	if c.number < 0 {
		return append(dst, refused...)
	}
	q.state.remaining = max(0, q.state.remaining-c.number)
	if q.state.remaining == 0 {
		q.close(c)
	}
	return strconv.AppendInt(dst, q.state.remaining, 10)
}

func appendPair(dst []byte, number uint64, remaining int64) []byte {
	return strconv.AppendInt(append(strconv.AppendUint(dst, number, 10), ' '), remaining, 10)
}

// repeated returns the reply of an earlier call with the same id, nil if there was none. A
// different call under a used id is refused. The record of the id is stored again, so that this
// reply too waits until the first call is durable.
func (q *quota) repeated(c *call) ([]byte, error) {
	value, err := q.records.Value(q.idKey(c))
	if err != nil || value == nil {
		return nil, err
	}
	word, reply, _ := bytes.Cut(value, []byte("\n"))
	if string(word) != c.String() {
		return []byte(refused), q.seen(c.pending)
	}
	c.group.begin()
	c.group.reply(q, c, reply, idExpiry)
	if _, err := q.records.SetBulk(c.pending, c.group.all(), true); err != nil {
		return nil, err
	}
	return reply, nil
}

// String identifies the word and number of a call: a repetition under the same id must have both.
func (c *call) String() string { return string(c.append(nil)) }

func (c *call) append(dst []byte) []byte {
	return strconv.AppendInt(append(append(dst, c.word...), ' '), c.number, 10)
}

func (q *quota) idKey(c *call) []byte { return append(quotaKey(q.name, "id\x00"), c.id...) }

// idExpiry is idLifetime as the database takes it.
const idExpiry = record.XT(idLifetime / time.Second)

// export asks for an export of the journals.
func (q *quota) export() {
	q.wanted.Store(true)
	q.exhausted(q)
}
