package lock

// Each step of a session below looks a key up, does one thing to the key, and drops the key if it
// has neither holders nor waiting requests.

// release ends the holding of a session's lock.
func (t *table) release(st *step, name []byte) {
	t.own(st, name, wordNotReleased, func(r *request) bool {
		if r.state != holding {
			return false
		}
		t.giveBack(st, r)
		return true
	})
}

// giveBack takes a lock from its holder. RELEASED has the counts before the next holders enter.
func (t *table) giveBack(st *step, r *request) {
	k := r.key
	t.leave(r)
	k.shard.counts.Releases++
	st.tell(r.session, k.name, k.about(wordReleased))
	t.handOver(st, k)
}

// renew prolongs a lock, by as many seconds as before if expires is negative. It fails if the
// session does not hold the lock; it never waits.
func (t *table) renew(st *step, name []byte, expires int32) {
	t.own(st, name, wordNotRenewed, func(r *request) bool {
		if r.state != holding {
			return false
		}
		if expires < 0 {
			expires = r.expires
		}
		t.prolong(st, r, min(expires, t.bounds.expires), wordRenewed)
		return true
	})
}

// cancel ends the session's own waiting request.
func (t *table) cancel(st *step, name []byte) {
	t.own(st, name, wordNotCancelled, func(r *request) bool {
		if r.state != waiting {
			return false
		}
		t.giveUp(r)
		st.tell(st.by, r.key.name, r.key.about(wordCancelled))
		t.moveUp(st, r.key)
		return true
	})
}

// giveUp ends a waiting request.
func (t *table) giveUp(r *request) {
	t.stopWaiting(r)
	t.forget(r)
	r.key.shard.counts.Cancels++
}

// moveUp grants the lock to requests that only waited because a request before them waited, after
// that request has ended. This happens in strict order only; otherwise they overtake it.
func (t *table) moveUp(st *step, k *key) {
	if t.bounds.strict {
		t.handOver(st, k)
	}
}

// own calls do for the session's own request for a key. It answers refusal if there is no request
// or do returns false.
func (t *table) own(st *step, name []byte, refusal string, do func(*request) bool) {
	sh := t.shard(name)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	k := sh.keys[string(name)]
	if k == nil {
		st.tell(st.by, string(name), reply{word: refusal})
		return
	}
	if r := k.find(st.by); r == nil || !do(r) {
		st.tell(st.by, k.name, k.about(refusal))
	}
	t.drop(k)
}

// cancelOf ends the request of the session with this address: a waiting request times out, a lock
// expires.
func (t *table) cancelOf(st *step, name []byte, address string) {
	sh := t.shard(name)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	k := sh.keys[string(name)]
	if k == nil {
		st.tell(st.by, string(name), reply{word: wordNotCancelled})
		return
	}
	r := k.first(func(r *request) bool { return r.session.address == address })
	switch {
	case r == nil:
		st.tell(st.by, k.name, k.about(wordNotCancelled))
		return
	case r.state == waiting:
		t.giveUp(r)
		if r.session != st.by {
			st.tell(r.session, k.name, k.about(wordTimeout))
		}
		t.moveUp(st, k)
	default:
		t.expire(st, r)
	}
	st.tell(st.by, k.name, k.about(wordCancelled))
	t.drop(k)
}

// status answers with the counts of a key.
func (t *table) status(st *step, name []byte) {
	sh := t.shard(name)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if k := sh.keys[string(name)]; k != nil {
		st.tell(st.by, k.name, k.about(wordStatus))
		return
	}
	st.tell(st.by, string(name), reply{word: wordStatus})
}

// end ends all requests of a session, with a RELEASED line for each lock if told is set.
func (t *table) end(st *step, s *session, told bool) {
	for _, k := range s.keys() {
		t.endOne(st, s, k, told)
		if len(st.told) >= deliverEvery {
			st.deliver()
		}
	}
}

func (t *table) endOne(st *step, s *session, k *key, told bool) {
	k.shard.mu.Lock()
	defer k.shard.mu.Unlock()
	switch r := k.find(s); {
	case r == nil:
		return // another goroutine ended the request first; k may have another name by now
	case r.state == waiting:
		t.giveUp(r)
		t.moveUp(st, k)
	case r.state == holding && told:
		t.giveBack(st, r)
	default:
		t.leave(r)
		k.shard.counts.Releases++
		t.handOver(st, k)
	}
	t.drop(k)
}

// pass handles all requests that are due at st.now.
func (t *table) pass(st *step) {
	for i := range t.shards {
		sh := &t.shards[i]
		for sh.timers.next.Load() <= st.now {
			t.passSome(st, sh)
			st.deliver()
		}
	}
}

// passSome handles at most deliverEvery due requests of a shard.
func (t *table) passSome(st *step, sh *shard) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for range deliverEvery {
		r := sh.timers.due(st.now)
		if r == nil {
			return
		}
		k := r.key
		if r.state == waiting {
			t.stopWaiting(r)
			t.forget(r)
			sh.counts.Timeouts++
			st.tell(r.session, k.name, k.about(wordTimeout))
			t.moveUp(st, k)
		} else {
			t.expire(st, r)
		}
		t.drop(k)
	}
}

// next returns when something is due, and stores that moment in alarm: whoever sets an earlier
// timer kicks the clock (at). The second look closes a gap. Whoever sets a timer between the first
// look and the store compares it with the old alarm, and does not kick the clock if the old alarm
// is earlier:
//
//	clock: earliest() = never       other: sets a timer for 5; alarm is still 3: no kick
//	clock: alarm = never            without a second look the clock would sleep past 5
func (t *table) next() int64 {
	for {
		when := t.earliest()
		t.alarm.Store(when)
		if t.earliest() >= when {
			return when
		}
	}
}

func (t *table) earliest() int64 {
	when := int64(never)
	for i := range t.shards {
		when = min(when, t.shards[i].timers.next.Load())
	}
	return when
}
