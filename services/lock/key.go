package lock

import "slices"

// insert puts r behind after; after nil means the front.
func (q *queue) insert(r, after *request) {
	r.prev, r.next = after, q.first
	if after != nil {
		r.next = after.next
		after.next = r
	} else {
		q.first = r
	}
	if r.next != nil {
		r.next.prev = r
	} else {
		q.last = r
	}
	q.n++
}

func (q *queue) remove(r *request) {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		q.first = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		q.last = r.prev
	}
	r.prev, r.next = nil, nil
	q.n--
}

// newKey returns a key without requests. The caller of newKey and of keep holds sh.mu.
func (sh *shard) newKey(name string) *key {
	var k *key
	if last := len(sh.spare) - 1; last >= 0 {
		k, sh.spare = sh.spare[last], sh.spare[:last]
	} else {
		k = &key{shard: sh}
	}
	k.name, k.limits, k.lines = name, k.oneLimit[:0], k.oneLine[:0]
	return k
}

// keepSpare is how many unused keys a shard keeps.
const keepSpare = 16

// keep keeps a key without requests for newKey.
func (sh *shard) keep(k *key) {
	if len(sh.spare) < keepSpare {
		k.name, k.limits, k.lines, k.index, k.oneRequest = "", nil, nil, nil, request{}
		sh.spare = append(sh.spare, k)
	}
}

// admits reports whether one more holder with this MAX may enter: neither its own MAX nor the MAX
// of any present holder may be exceeded.
func (k *key) admits(max int32) bool {
	n := k.holders.n + 1
	return n <= int(max) && (len(k.limits) == 0 || n <= int(k.limits[0].max))
}

// next returns the oldest waiting request that may enter, nil if none may. In strict order only the
// oldest of all may enter.
func (k *key) next(strict bool) *request {
	var oldest *request
	for i := range k.lines {
		l := &k.lines[i]
		if (strict || k.admits(l.max)) && (oldest == nil || l.first.arrival < oldest.arrival) {
			oldest = l.first
		}
	}
	if oldest == nil || !k.admits(oldest.max) {
		return nil
	}
	return oldest
}

// enqueue lets r wait. Its place is that of its arrival: the end of the line, unless r has waited
// in another line before (merge).
func (k *key) enqueue(r *request) {
	i := slices.IndexFunc(k.lines, func(l line) bool { return l.max == r.max })
	if i < 0 {
		i = len(k.lines)
		k.lines = append(k.lines, line{max: r.max})
	}
	after := k.lines[i].last
	for after != nil && after.arrival > r.arrival {
		after = after.prev
	}
	k.lines[i].insert(r, after)
	k.waiting++
}

func (k *key) dequeue(r *request) {
	i := slices.IndexFunc(k.lines, func(l line) bool { return l.max == r.max })
	k.lines[i].remove(r)
	if k.lines[i].n == 0 {
		k.lines = slices.Delete(k.lines, i, i+1)
	}
	k.waiting--
}

// enter makes r the latest holder.
func (k *key) enter(r *request) {
	k.holders.insert(r, k.holders.last)
	k.addLimit(r.max)
}

func (k *key) leave(r *request) {
	k.holders.remove(r)
	k.removeLimit(r.max)
}

func (k *key) addLimit(max int32) {
	i, found := k.findLimit(max)
	if !found {
		k.limits = slices.Insert(k.limits, i, limit{max: max})
	}
	k.limits[i].n++
}

func (k *key) removeLimit(max int32) {
	i, _ := k.findLimit(max)
	if k.limits[i].n--; k.limits[i].n == 0 {
		k.limits = slices.Delete(k.limits, i, i+1)
	}
}

func (k *key) findLimit(max int32) (int, bool) {
	return slices.BinarySearchFunc(k.limits, max, func(l limit, max int32) int { return int(l.max) - int(max) })
}

// queued returns the waiting requests in the order of their arrival.
func (k *key) queued() []*request {
	all := make([]*request, 0, k.waiting)
	for i := range k.lines {
		for r := k.lines[i].first; r != nil; r = r.next {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *request) int { return int(int64(a.arrival - b.arrival)) })
	return all
}

// many is the number of requests from which on find uses an index instead of a look at each
// request.
const many = 8

// note makes a new request known to find, before it waits or holds the lock.
func (k *key) note(r *request) {
	if k.index == nil && k.holders.n+k.waiting < many {
		return
	}
	if k.index == nil {
		k.index = make(map[*session]*request, 2*many)
		k.first(func(r *request) bool { k.index[r.session] = r; return false })
	}
	k.index[r.session] = r
}

// unnote takes a request out of the index, after it has stopped waiting or holding the lock.
func (k *key) unnote(r *request) {
	delete(k.index, r.session)
	if len(k.index) < many/2 {
		k.index = nil
	}
}

// find returns the request of a session, nil when there is none.
func (k *key) find(s *session) *request {
	if k.index != nil {
		return k.index[s]
	}
	return k.first(func(r *request) bool { return r.session == s })
}

// first returns the first request for which right returns true, nil if there is none.
func (k *key) first(right func(*request) bool) *request {
	for r := k.holders.first; r != nil; r = r.next {
		if right(r) {
			return r
		}
	}
	for i := range k.lines {
		for r := k.lines[i].first; r != nil; r = r.next {
			if right(r) {
				return r
			}
		}
	}
	return nil
}
