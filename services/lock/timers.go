package lock

// set changes the moment of r; never takes r out of the heap.
func (t *timers) set(r *request, when int64) {
	old := r.when
	r.when = when
	switch {
	case old == never && when != never:
		r.slot = len(t.heap)
		t.heap = append(t.heap, r)
		t.up(r.slot)
	case old == never:
	case when == never:
		t.remove(r)
	default:
		t.down(t.up(r.slot))
	}
	if when < t.next.Load() {
		t.next.Store(when)
	}
}

// due returns the earliest request if its moment has come, else nil.
func (t *timers) due(now int64) *request {
	if len(t.heap) == 0 {
		t.next.Store(never)
		return nil
	}
	if r := t.heap[0]; r.when <= now {
		return r
	}
	t.next.Store(t.heap[0].when)
	return nil
}

func (t *timers) remove(r *request) {
	i, last := r.slot, len(t.heap)-1
	t.swap(i, last)
	t.heap[last] = nil
	t.heap = t.heap[:last]
	if last == 0 && cap(t.heap) > keepHeap {
		t.heap = nil
	}
	if i < last {
		t.down(t.up(i))
	}
}

// keepHeap is the largest capacity of an empty heap that is kept.
const keepHeap = 1 << 10

func (t *timers) up(i int) int {
	for i > 0 {
		above := (i - 1) / 2
		if !t.heap[i].before(t.heap[above]) {
			break
		}
		t.swap(i, above)
		i = above
	}
	return i
}

func (t *timers) down(i int) {
	for {
		least := 2*i + 1
		if least >= len(t.heap) {
			return
		}
		if right := least + 1; right < len(t.heap) && t.heap[right].before(t.heap[least]) {
			least = right
		}
		if !t.heap[least].before(t.heap[i]) {
			return
		}
		t.swap(i, least)
		i = least
	}
}

// before reports whether r is due before s. Requests that are due at the same moment are in the
// order of their arrival.
func (r *request) before(s *request) bool {
	return r.when < s.when || r.when == s.when && r.arrival < s.arrival
}

func (t *timers) swap(i, j int) {
	t.heap[i], t.heap[j] = t.heap[j], t.heap[i]
	t.heap[i].slot, t.heap[j].slot = i, j
}
