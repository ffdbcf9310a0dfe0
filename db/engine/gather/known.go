package gather

import (
	"encoding/binary"

	"gotycoon/db/engine"
)

// known is what a lane knows of records that its operations have read and changed lately, so that
// it need not read them again: see "Records that are known" in doc.go. Two generations of them are
// kept: when the young one is full, the old one goes.
type known struct {
	young, old map[string]*guess
	turn       int // number of the young generation
	bytes      int // of the young generation, about
	credit     int // guesses are made while it is above 0
	room       []byte
}

// guess is a record as a group of the lane has left it.
type guess struct {
	name     string
	turn     int // generation
	value    []byte
	xt       int64
	revision uint64
}

const (
	guessesBytes = 16 << 20 // of a generation
	guessCost    = 160      // of a record beside key and value
	largestGuess = 1 << 10  // bytes of a value
	leastValue   = 16       // room for less is not given up

	firstCredit = 200
	mostCredit  = 1000
	// of a wrong guess, in right ones: its group loses, is looked at key by key, and comes again
	wrongPrice = 100
)

// find returns what is known of a key, nil for nothing.
func (n *known) find(k engine.Key) *guess {
	if len(n.young) == 0 && len(n.old) == 0 {
		return nil
	}
	n.room = append(binary.BigEndian.AppendUint16(n.room[:0], k.DB), k.Key...)
	if g, there := n.young[string(n.room)]; there {
		return g
	}
	return n.old[string(n.room)]
}

// keep notes a record. g is what was known of it, nil for nothing.
func (n *known) keep(g *guess, k engine.Key, value []byte, xt int64, revision uint64) {
	if len(value) > largestGuess {
		n.drop(g)
		return
	}
	if g == nil {
		g = &guess{name: string(append(binary.BigEndian.AppendUint16(n.room[:0], k.DB), k.Key...)), turn: n.turn - 1}
	}
	if g.turn != n.turn {
		if n.young == nil {
			n.young = map[string]*guess{}
		}
		delete(n.old, g.name)
		n.young[g.name], g.turn = g, n.turn
		n.bytes += guessCost + len(g.name) + len(g.value)
	}
	n.bytes += len(value) - len(g.value)
	if cap(g.value) > 2*len(value)+leastValue {
		g.value = nil // room that nobody counts
	}
	g.value, g.xt, g.revision = append(g.value[:0], value...), xt, revision
	if n.bytes > guessesBytes {
		n.old, n.young, n.bytes = n.young, nil, 0
		n.turn++
	}
}

// drop forgets a record.
func (n *known) drop(g *guess) {
	if g == nil {
		return
	}
	if g.turn == n.turn {
		n.bytes -= guessCost + len(g.name) + len(g.value)
	}
	delete(n.young, g.name)
	delete(n.old, g.name)
}

// forget forgets everything.
func (n *known) forget() {
	n.young, n.old, n.bytes = nil, nil, 0
	n.turn++
}

// judge notes whether a guess was right, or would have been.
func (n *known) judge(right bool) {
	switch {
	case !right:
		n.credit = max(n.credit-wrongPrice, -mostCredit)
	case n.credit < mostCredit:
		n.credit++
	}
}

// assume takes what is known for the records that bodies want to read.
func (l *lane) assume() {
	v := &l.view
	for i := range v.slots {
		s := &v.slots[i]
		s.guess = l.known.find(s.key)
		if s.guess == nil || !s.wanted || engine.Expired(s.guess.xt, v.now) {
			continue
		}
		s.guessed = s.guess.revision
		if l.known.credit > 0 {
			s.assumed, s.found = true, true
			s.record = engine.Record{Key: s.key, Value: s.guess.value, XT: s.guess.xt, Revision: s.guess.revision}
		}
	}
}

// postpone puts back the tasks that have read what was only assumed and have changed nothing: no
// condition tells them whether it was so. What they want is forgotten, so they read it next time.
func (l *lane) postpone() {
	var back []*task
	kept := l.group[:0]
	for _, t := range l.group {
		if s := l.slot(t, 0); s.assumed && !s.dirty {
			back = append(back, t)
		} else {
			kept = append(kept, t)
		}
	}
	l.group = kept
	l.putBack(back)
}

// learn notes the records that a group has stored, and how good the guesses were.
func (l *lane) learn(r *engine.Result) {
	all := r.Made()
	for i := range l.view.slots {
		s := &l.view.slots[i]
		made := s.dirty && s.change >= 0 && (all || r.Won[s.change])
		if s.guessed != 0 {
			l.known.judge(made && s.found && s.record.Revision == s.guessed)
		}
		switch {
		case made && s.exists && (s.wanted || s.guess != nil):
			l.known.keep(s.guess, s.key, s.value, s.xt, r.Revision)
		case s.dirty || s.guessed != 0:
			l.known.drop(s.guess)
		}
	}
}
