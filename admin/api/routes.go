package api

import (
	"context"
	"log/slog"
	"net/http"

	"gotycoon/admin"
	"gotycoon/internal/browser"
)

// Mount adds the paths to a listener.
func (a *API) Mount(s *admin.Server) {
	a.server = s
	for pattern, h := range a.reads() {
		s.Handle("GET /api/"+pattern, admin.Read, a.guard(h))
	}
	s.Handle("GET /api/databases/{db}/backup", admin.Admin, a.guard(a.backup))
	for pattern, h := range a.changes() {
		s.Handle(pattern, admin.Admin, a.guard(a.change(h)))
	}
}

func (a *API) reads() map[string]handler {
	return map[string]handler{
		"server":                 a.about,
		"samples":                a.sampled,
		"databases":              a.databases,
		"databases/{db}/records": a.records,
		"databases/{db}/record":  a.record,
		"databases/{db}/value":   a.value,
		"replication":            a.replication,
		"cluster":                a.cluster,
		"engine":                 a.engine,
		"log":                    a.logs,
		"snapshots":              a.snapshots,
		"locks":                  page("lock", "Locks are off. Start the server with -lock-port PORT, 11400 for example."),
		"counters":               page("counter", "Counters are off. Start the server with -counter-port PORT, 11215 for example."),
		"sequences":              page("sequence", "Sequences are off. Start the server with -sequence-port PORT, 9090 for example."),
		"quotas":                 page("quota", "Quotas are off. Start the server with -quota-port PORT, 9091 for example."),
		"slow":                   a.slow,
		"facts":                  a.facts,
	}
}

// shownNames is how many keys, counters, quotas and sequences the console shows.
const shownNames = 500

// page returns the handler of the page of a service. text says how to switch the service on.
func page(service, text string) handler {
	return func(_ http.ResponseWriter, r *http.Request, s *Sources) (any, error) {
		if show := s.Services[service]; show != nil {
			return show(r.URL.Query().Get("prefix"), shownNames)
		}
		return off(text), nil
	}
}

func (a *API) changes() map[string]handler {
	return map[string]handler{
		"POST /api/databases/{db}/record":     a.setRecord,
		"DELETE /api/databases/{db}/record":   a.removeRecord,
		"POST /api/databases/{db}/checkpoint": a.checkpoint,
		"POST /api/checkpoint":                a.checkpointAll,
		"POST /api/snapshots":                 a.takeSnapshots,
		"POST /api/cluster":                   a.orderCluster,
	}
}

// New returns an API without sources.
func New(o Options) *API {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Ready == nil {
		o.Ready = func() []string { return nil }
	}
	if o.Fixed == nil {
		o.Fixed = func() string { return "" }
	}
	if o.Pages == nil {
		o.Pages, _ = browser.New(nil) // New fails for wrong names only
	}
	if o.Allow == nil {
		o.Allow = func(*http.Request) error { return nil }
	}
	a := &API{opts: o}
	a.ctx, a.stop = context.WithCancel(context.Background())
	return a
}

// Open gives the API its sources. It is called once.
func (a *API) Open(s Sources) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.sources = &s
	a.using.Go(func() { a.sample(&s) })
}

// Close returns when nobody uses the sources any more. Long tasks are interrupted. A second Close
// does nothing.
func (a *API) Close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.stop()
	a.using.Wait()
}
