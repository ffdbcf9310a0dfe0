package api

import (
	"net/http"
	"time"
)

const (
	shownNames   = 500 // keys, counters, quotas and sequences
	shownClients = 50  // holders and waiters of a key
)

// lockRow is a lock with its clients.
type lockRow struct {
	Name     string       `json:"name"`
	Holders  int          `json:"holders"`
	Waiters  int          `json:"waiters"`
	Requests []requestRow `json:"requests"` // the first requests, holders before waiters
}

// requestRow is a client that holds a lock or waits for it.
type requestRow struct {
	Client string  `json:"client"`
	Age    float64 `json:"age"`  // seconds
	Left   float64 `json:"left"` // seconds; negative: it does not end
	Max    int     `json:"max"`
	Token  uint64  `json:"token,string"`
}

func (a *API) locks(_ http.ResponseWriter, _ *http.Request, s *Sources) (any, error) {
	if s.Locks == nil {
		return off("Locks are off. Start the server with -lock-port PORT, 11400 for example."), nil
	}
	keys, all := s.Locks.Keys(shownNames, shownClients)
	rows := []lockRow{}
	for _, k := range keys {
		row := lockRow{Name: k.Name, Holders: k.Holders, Waiters: k.Waiters, Requests: []requestRow{}}
		for _, r := range k.Requests {
			row.Requests = append(row.Requests, requestRow{r.Client, r.Age.Seconds(), seconds(r.Left), r.Max, r.Token})
		}
		rows = append(rows, row)
	}
	st := s.Locks.Stats()
	return map[string]any{
		"keys": rows, "all": all, "holders": st.Holders, "waiters": st.Waiters, "oldestWait": st.OldestWait.Seconds(), "conns": st.Conns,
		"grants": st.Grants, "timeouts": st.Timeouts, "expiries": st.Expiries, "refusals": st.Refusals,
	}, nil
}

func seconds(d time.Duration) float64 {
	if d < 0 {
		return -1
	}
	return d.Seconds()
}

// counterRow is a counter.
type counterRow struct {
	Name    string `json:"name"`
	Current uint32 `json:"current"`
	Maximum uint32 `json:"maximum"`
}

func (a *API) counters(_ http.ResponseWriter, r *http.Request, s *Sources) (any, error) {
	if s.Counters == nil {
		return off("Counters are off. Start the server with -counter-port PORT, 11215 for example."), nil
	}
	top, all := s.Counters.Counters(r.URL.Query().Get("prefix"), shownNames)
	rows := []counterRow{}
	for _, c := range top {
		rows = append(rows, counterRow{c.Name, c.Current, c.Maximum})
	}
	st := s.Counters.Stats()
	return map[string]any{
		"counters": rows, "all": all, "created": st.Created, "conns": st.Connections, "acquires": st.Acquire, "releases": st.Release,
	}, nil
}

func (a *API) sequences(_ http.ResponseWriter, _ *http.Request, s *Sources) (any, error) {
	if s.Sequences == nil {
		return off("Sequences are off. Start the server with -sequence-port PORT, 9090 for example."), nil
	}
	all, err := s.Sequences.List(shownNames)
	if err != nil {
		return nil, err
	}
	rows := []map[string]any{}
	for _, q := range all {
		rows = append(rows, map[string]any{"name": q.Name, "bound": q.Bound.UnixMilli()})
	}
	return map[string]any{"sequences": rows, "limit": shownNames}, nil
}

func (a *API) quotas(_ http.ResponseWriter, _ *http.Request, s *Sources) (any, error) {
	if s.Quotas == nil {
		return off("Quotas are off. Start the server with -quota-port PORT, 9091 for example."), nil
	}
	all, err := s.Quotas.List(shownNames)
	if err != nil {
		return nil, err
	}
	rows := []map[string]any{}
	for _, q := range all {
		rows = append(rows, map[string]any{"name": q.Name, "remaining": q.Remaining, "journal": q.Journal, "open": q.Open})
	}
	return map[string]any{"quotas": rows, "limit": shownNames}, nil
}
