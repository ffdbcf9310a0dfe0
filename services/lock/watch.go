package lock

import (
	"cmp"
	"slices"
	"time"
)

// Request is a lock that a client holds or waits for.
type Request struct {
	Client string        // its address
	Age    time.Duration // since it began to hold or to wait
	Left   time.Duration // until it expires or times out; negative: never
	Max    int           // how many holders it allows, itself included
	Token  uint64        // fencing token; 0: none
}

// Key is a lock with its clients at one moment.
type Key struct {
	Name             string
	Holders, Waiters int
	Requests         []Request // holders as they were granted, then waiters as they arrived
}

// Keys returns at most max of the keys in use, those with the most waiting requests first, each
// with at most this many requests. all is the number of keys in use. Keys looks at all keys, but
// keeps few of them in memory.
func (s *Server) Keys(max, requests int) (keys []Key, all int) {
	found, all := s.table.busiest(max)
	now := s.now()
	for _, k := range found {
		key := Key{Name: k.name, Holders: k.holders, Waiters: k.waiters}
		for _, e := range s.table.entries([]byte(k.name), now) {
			if len(key.Requests) == requests {
				break
			}
			key.Requests = append(key.Requests, e.request())
		}
		if len(key.Requests) > 0 { // still in use
			keys = append(keys, key)
		}
	}
	return keys, all
}

// shownClients is how many requests of a key the console shows.
const shownClients = 50

// Show implements services.Service.
func (s *Server) Show(_ string, limit int) (any, error) {
	type client struct {
		Client string  `json:"client"`
		Age    float64 `json:"age"`  // seconds
		Left   float64 `json:"left"` // seconds; negative: it does not end
		Max    int     `json:"max"`
		Token  uint64  `json:"token,string"`
	}
	type lock struct {
		Name     string   `json:"name"`
		Holders  int      `json:"holders"`
		Waiters  int      `json:"waiters"`
		Requests []client `json:"requests"` // the first requests, holders before waiters
	}
	keys, all := s.Keys(limit, shownClients)
	rows := []lock{}
	for _, k := range keys {
		row := lock{Name: k.Name, Holders: k.Holders, Waiters: k.Waiters, Requests: []client{}}
		for _, r := range k.Requests {
			left := -1.0
			if r.Left >= 0 {
				left = r.Left.Seconds()
			}
			row.Requests = append(row.Requests, client{r.Client, r.Age.Seconds(), left, r.Max, r.Token})
		}
		rows = append(rows, row)
	}
	now := s.Stats()
	return map[string]any{
		"keys": rows, "all": all, "holders": now.Holders, "waiters": now.Waiters, "oldestWait": now.OldestWait.Seconds(), "conns": now.Conns,
		"grants": now.Grants, "timeouts": now.Timeouts, "expiries": now.Expiries, "refusals": now.Refusals,
	}, nil
}

func (e *entry) request() Request {
	r := Request{Client: e.address, Age: time.Duration(e.age), Left: -1, Max: int(e.max), Token: e.token}
	if e.left != never {
		r.Left = time.Duration(e.left)
	}
	return r
}

// busiest returns the keys with the most waiting requests, then with the most holders; all is the
// number of keys.
func (t *table) busiest(limit int) (top []keyStatus, all int) {
	order := func(a, b keyStatus) int {
		return cmp.Or(b.waiters-a.waiters, b.holders-a.holders, byKey(a, b))
	}
	for i := range t.shards {
		sh := &t.shards[i]
		sh.mu.Lock()
		all += len(sh.keys)
		for _, k := range sh.keys {
			top = append(top, keyStatus{k.name, k.holders.n, k.waiting})
		}
		sh.mu.Unlock()
		if len(top) > limit {
			slices.SortFunc(top, order)
			top = top[:limit]
		}
	}
	slices.SortFunc(top, order)
	return top, all
}
