package relay

import "context"

// mostQueued is how many signals wait for the message before theirs.
const mostQueued = 4096

// enqueueLocked puts an item into the queue. The caller holds mu.
func (r *Relay) enqueueLocked(it item) {
	if len(r.queue) == mostQueued {
		r.dropLocked([]item{it})
		return
	}
	r.queue = append(r.queue, it)
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// dropLocked forgets items that no server hears of. The caller holds mu.
func (r *Relay) dropLocked(items []item) {
	for _, it := range items {
		if it.kind == kindTaken {
			delete(r.bids, it.signal)
		} else {
			r.stats.Dropped++
		}
	}
}

// send sends what the queue has, as much as fits into a message at a time.
func (r *Relay) send() {
	for {
		select {
		case <-r.more:
		case <-r.ctx.Done():
			return
		}
		for {
			message, items := r.next()
			if len(items) == 0 {
				break
			}
			ctx, cancel := context.WithTimeout(r.ctx, sendTimeout)
			err := r.signals.Send(ctx, message)
			cancel()
			r.sent(items, err)
		}
	}
}

// next takes the next message from the queue. Answers are left out where another server's has been
// heard before.
func (r *Relay) next() (message string, items []item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := []byte(magic)
	n := 0
	for ; n < len(r.queue) && len(text) < mostBytes; n++ {
		it := r.queue[n]
		if _, bid := r.bids[it.signal]; it.kind == kindTaken && !bid {
			continue
		}
		text = it.append(text)
		items = append(items, it)
	}
	r.queue = r.queue[n:]
	return string(text), items
}

// sent notes what has become of a message. A message that has failed is not sent again, since it
// may have been heard; and what waits behind it is as old.
func (r *Relay) sent(items []item, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.dropLocked(items)
		r.dropLocked(r.queue)
		r.queue = nil
		return
	}
	for _, it := range items {
		if it.kind != kindTaken {
			r.stats.Sent++
		}
	}
}
