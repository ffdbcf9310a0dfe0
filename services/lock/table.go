package lock

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

const (
	shardCount = 128
	second     = int64(time.Second)
)

// table is the state of all locks. Each shard of the keys has a mutex; the mutex of a session is
// taken after that of a shard.
type table struct {
	seed   maphash.Seed
	shards [shardCount]shard
	bounds bounds
	tokens *tokens // nil: there are none

	keys    atomic.Int64
	names   atomic.Int64 // bytes of the keys, and of all requests but the first of each key
	waiters atomic.Int64

	alarm atomic.Int64  // when the clock looks at the shards next
	kick  chan struct{} // asks the clock to look earlier than that
}

// bounds are the limits of the server.
type bounds struct {
	keys, waiters int64
	names         int64 // of table.names
	expires       int32 // seconds
	strict        bool  // StrictOrder: no request is overtaken
}

const (
	keepKeys = 1 << 10 // a larger map is dropped when it becomes empty

	requestCost = 192 // bytes of a request, with its entries in its session, its key and the timers
)

func newTable(b bounds, tk *tokens) *table {
	t := &table{seed: maphash.MakeSeed(), bounds: b, tokens: tk, kick: make(chan struct{}, 1)}
	t.alarm.Store(never)
	for i := range t.shards {
		t.shards[i].keys = map[string]*key{}
		t.shards[i].timers.next.Store(never)
	}
	return t
}

func (t *table) shard(name []byte) *shard {
	return &t.shards[maphash.Bytes(t.seed, name)%shardCount]
}

// lock grants a lock to a session, renews the session's lock, or lets the request wait.
func (t *table) lock(st *step, name []byte, w wish) {
	w.expires = min(w.expires, t.bounds.expires)
	sh := t.shard(name)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	k := sh.keys[string(name)]
	if k == nil {
		t.lockNew(st, sh, string(name), w)
		return
	}
	switch r := k.find(st.by); {
	case r == nil:
		t.arrive(st, k, w)
	case r.state == holding:
		t.renewBy(st, r, w)
	default:
		t.merge(st, r, w)
	}
	t.drop(k)
}

// lockNew is lock for a key that nobody uses. The caller holds sh.mu.
func (t *table) lockNew(st *step, sh *shard, name string, w wish) {
	if !t.holdKey(len(name)) {
		sh.counts.Refusals++
		st.tell(st.by, name, reply{word: wordTooManyKeys})
		return
	}
	k := sh.newKey(name)
	sh.keys[k.name] = k
	sh.peak = max(sh.peak, len(sh.keys))
	t.arrive(st, k, w)
	t.drop(k)
}

// holdKey counts a key. It returns false if the key is one too many.
func (t *table) holdKey(length int) bool {
	keys, names := t.keys.Add(1), t.names.Add(int64(length))
	if keys <= t.bounds.keys && names <= t.bounds.names {
		return true
	}
	t.letGoKey(length)
	return false
}

func (t *table) letGoKey(length int) {
	t.keys.Add(-1)
	t.names.Add(-int64(length))
}

// drop removes a key without holders and waiting requests. The caller holds the mutex of the shard.
func (t *table) drop(k *key) {
	if k.holders.n+k.waiting > 0 {
		return
	}
	sh := k.shard
	delete(sh.keys, k.name)
	t.letGoKey(len(k.name))
	sh.keep(k)
	if len(sh.keys) == 0 && sh.peak > keepKeys {
		sh.keys, sh.peak = map[string]*key{}, 0
	}
}

// arrive handles the first request of a session for a key. It calls no handOver: no waiting request
// could enter before, and one more holder or waiting request lets none enter. The caller holds the
// mutex of the shard, as for all functions below that take a key or a request.
func (t *table) arrive(st *step, k *key, w wish) {
	enters := k.admits(w.max) && (k.waiting == 0 || !t.bounds.strict)
	if !enters && !t.mayWait(st, k, w) {
		return
	}
	sh := k.shard
	r := t.newRequest(k)
	if r == nil {
		if !enters {
			t.waiters.Add(-1)
		}
		sh.counts.Refusals++
		st.tell(st.by, k.name, k.about(wordTooManyKeys))
		return
	}
	sh.arrival++
	*r = request{key: k, session: st.by, max: w.max, expires: w.expires, fenced: w.fenced, arrival: sh.arrival, since: st.now, when: never}
	st.by.add(r)
	k.note(r)
	if enters {
		if !t.grant(st, r) {
			st.tell(r.session, k.name, k.about(wordExpired))
		}
		return
	}
	r.state = waiting
	k.enqueue(r)
	if w.timeout > 0 {
		t.at(r, st.now+int64(w.timeout)*second)
	}
}

// newRequest returns an unused request, nil if there is no memory for it. The first request of a
// key is counted as the key.
func (t *table) newRequest(k *key) *request {
	if k.oneRequest.key == nil {
		return &k.oneRequest
	}
	if t.names.Add(requestCost) > t.bounds.names {
		t.names.Add(-requestCost)
		return nil
	}
	return new(request)
}

// mayWait reports whether a request that cannot enter may wait, and counts it then. Otherwise it
// answers the request: with TIMEOUT if the client will not wait, with TOO_MANY_WAITERS if there is
// a waiter too many.
func (t *table) mayWait(st *step, k *key, w wish) bool {
	if w.timeout == 0 {
		k.shard.counts.Timeouts++
		st.tell(st.by, k.name, k.about(wordTimeout))
		return false
	}
	if t.waiters.Add(1) > t.bounds.waiters {
		t.waiters.Add(-1)
		k.shard.counts.Refusals++
		st.tell(st.by, k.name, k.about(wordTooManyWaiters))
		return false
	}
	return true
}

// grant makes r a holder, or refuses r with NO_TOKEN if r wants a token and there is none. It
// returns false if the lock expires at once (EXPIRES 0): then r has received RELEASED and does not
// become a holder, and the caller must tell r's session EXPIRED after the key is handed over.
func (t *table) grant(st *step, r *request) bool {
	k := r.key
	if r.expires == 0 {
		t.forget(r)
		k.shard.counts.Expiries++
		st.tell(r.session, k.name, k.about(wordReleased))
		return false
	}
	if !t.number(r) {
		t.forget(r)
		st.tell(r.session, k.name, k.about(wordNoToken))
		return true
	}
	r.state, r.since = holding, st.now
	k.enter(r)
	t.at(r, st.now+int64(r.expires)*second)
	k.shard.counts.Grants++
	st.tell(r.session, k.name, r.left(wordGranted))
	return true
}

// number gives r a token if r wants one. It returns false if there is no token that is safe to use.
func (t *table) number(r *request) bool {
	if !r.fenced || r.token != 0 {
		return true
	}
	r.token = t.tokens.take()
	if r.token == 0 {
		r.key.shard.counts.Refusals++
	}
	return r.token != 0
}

// renewBy handles another lock command of a holder. The lock is renewed even if its new MAX allows
// fewer holders than there are.
func (t *table) renewBy(st *step, r *request, w wish) {
	k := r.key
	r.fenced = w.fenced
	if !t.number(r) {
		st.tell(r.session, k.name, k.about(wordNoToken))
		return
	}
	if r.max != w.max {
		k.removeLimit(r.max)
		k.addLimit(w.max)
		r.max = w.max
	}
	t.prolong(st, r, w.expires, wordGranted)
	t.handOver(st, k) // with a greater MAX more may enter
}

// prolong lets a lock expire this many seconds from now.
func (t *table) prolong(st *step, r *request, expires int32, word string) {
	if expires == 0 {
		t.expire(st, r)
		return
	}
	r.expires = expires
	t.at(r, st.now+int64(expires)*second)
	r.key.shard.counts.Renewals++
	st.tell(r.session, r.key.name, r.left(word))
}

// merge handles another lock command of a session that waits already. Both commands get one reply
// together. The request keeps its place in the queue and its timeout.
func (t *table) merge(st *step, r *request, w wish) {
	k := r.key
	r.expires, r.fenced = w.expires, w.fenced
	if r.max != w.max {
		k.dequeue(r)
		r.max = w.max
		k.enqueue(r)
	}
	t.handOver(st, k)
}

// handOver grants the lock to waiting requests until no more of them may enter.
func (t *table) handOver(st *step, k *key) {
	var lapsed []*session
	for r := k.next(t.bounds.strict); r != nil; r = k.next(t.bounds.strict) {
		t.stopWaiting(r)
		if !t.grant(st, r) {
			lapsed = append(lapsed, r.session)
		}
	}
	for _, s := range lapsed {
		st.tell(s, k.name, k.about(wordExpired))
	}
}

// at sets the moment at which r times out or expires; never takes r out of the timers.
func (t *table) at(r *request, when int64) {
	r.key.shard.timers.set(r, when)
	if when < t.alarm.Load() {
		select {
		case t.kick <- struct{}{}:
		default:
		}
	}
}

// stopWaiting takes a waiting request out of the queue.
func (t *table) stopWaiting(r *request) {
	r.key.dequeue(r)
	t.waiters.Add(-1)
	t.at(r, never)
}

// forget ends a request that neither waits nor holds the lock.
func (t *table) forget(r *request) {
	r.state = gone
	r.key.unnote(r)
	r.session.remove(r)
	if r != &r.key.oneRequest {
		t.names.Add(-requestCost)
	}
}

// leave takes a lock away from its holder. The caller hands it over to waiting requests.
func (t *table) leave(r *request) {
	r.key.leave(r)
	t.at(r, never)
	t.forget(r)
}

// expire takes a lock away from its holder. The holder receives RELEASED, and EXPIRED after the
// lock has been handed over.
func (t *table) expire(st *step, r *request) {
	k := r.key
	t.leave(r)
	k.shard.counts.Expiries++
	st.tell(r.session, k.name, k.about(wordReleased))
	t.handOver(st, k)
	st.tell(r.session, k.name, k.about(wordExpired))
}
