package lock

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
