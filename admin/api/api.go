package api

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"gotycoon/admin"
	"gotycoon/admin/exporter"
	"gotycoon/coconut"
	"gotycoon/counter"
	"gotycoon/db"
	"gotycoon/internal/browser"
	"gotycoon/internal/metrics"
	"gotycoon/jesync"
)

// Options of an API.
type Options struct {
	Version  string          // of the product
	Revision string          // it was built from
	Started  time.Time       // of the process
	Ready    func() []string // why clients should use another server; nil: they never should
	Fixed    func() string   // why nothing may be changed from here, empty when it may; nil: it always may
	Logger   *slog.Logger    // told every change; nil: silent

	Pages  *browser.Policy // which names this machine has, and whose pages may change something
	Proves bool            // the listener looks at credentials: those that it has let in prove something

	// Allow returns why a request is refused that the listener has let in; nil: none is. What is shown here is the data, too.
	Allow func(r *http.Request) error
}

// Sources are what an API looks at. Those that are nil are off.
type Sources struct {
	Catalog   *db.Catalog // never nil
	Identity  Identity
	Meter     *metrics.Meter
	Ballast   int64         // bytes of Go objects that are no memory, because nobody touches them
	Slow      time.Duration // requests that take longer are remembered; 0: none
	Protocols []*metrics.Protocol
	Ports     []exporter.Port

	Follower  func() exporter.Follower // the replication from a master
	Master    func() Master
	Replicas  func() []exporter.Replica // the followers of this server; nil: not known
	Snapshots Snapshots

	Locks     *jesync.Server
	Counters  *counter.Server
	Sequences *coconut.SequenceServer
	Quotas    *coconut.QuotaServer

	Facts    func() []Section // about process and machine
	Settings func() []Setting // the configuration in effect; nil: not known
}

// Master is what else there is to know about the replication from a master.
type Master struct {
	Address string // empty: there is none
	Trouble string // why the replication does not go on; empty: it does
	Copy    string // how far a copy is; empty: none is under way
}

// Identity is what a server is called.
type Identity struct {
	Host     string `json:"host"`     // of the machine
	Address  string `json:"address"`  // of the data port
	ServerID int    `json:"serverId"` // -1: none
}

// Section is some facts about one thing.
type Section struct {
	Title string `json:"title"`
	Rows  []Fact `json:"rows"`
}

// Fact is one of them. Off says how to switch on what is off.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Off   string `json:"off,omitempty"`
}

// Setting is one option of the configuration.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source,omitempty"` // where the value comes from; empty: not known
	Reload bool   `json:"reload,omitempty"` // it can change while the server runs
	Secret bool   `json:"secret,omitempty"` // the value is not shown
}

// API answers the console. Its goroutines, the sampler and what was begun by a request, end with Close.
type API struct {
	opts   Options
	server *admin.Server

	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	samples ring
	tasks   tasks

	mu      sync.Mutex // protects the fields below
	sources *Sources   // nil before Open
	closed  bool
	using   sync.WaitGroup // requests that look at sources, tasks, and the sampler
}

// New returns an API that knows nothing yet.
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
		o.Pages, _ = browser.New(nil) // only names can be wrong
	}
	if o.Allow == nil {
		o.Allow = func(*http.Request) error { return nil }
	}
	a := &API{opts: o}
	a.ctx, a.stop = context.WithCancel(context.Background())
	return a
}

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
		"log":                    a.logs,
		"snapshots":              a.snapshots,
		"locks":                  a.locks,
		"counters":               a.counters,
		"sequences":              a.sequences,
		"quotas":                 a.quotas,
		"slow":                   a.slow,
		"facts":                  a.facts,
	}
}

func (a *API) changes() map[string]handler {
	return map[string]handler{
		"POST /api/databases/{db}/record":     a.setRecord,
		"DELETE /api/databases/{db}/record":   a.removeRecord,
		"POST /api/databases/{db}/checkpoint": a.checkpoint,
		"POST /api/checkpoint":                a.checkpointAll,
		"POST /api/snapshots":                 a.takeSnapshots,
	}
}

// Open tells what there is to look at. It is called once.
func (a *API) Open(s Sources) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.sources = &s
	a.using.Go(func() { a.sample(&s) })
}

// Close returns when nobody looks at the sources any more. What takes long is interrupted. Closing twice is fine.
func (a *API) Close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.stop()
	a.using.Wait()
}

// enter returns the sources, which are there until leave is called; nil when they are not.
func (a *API) enter() *Sources {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.sources == nil {
		return nil
	}
	a.using.Add(1)
	return a.sources
}

func (a *API) leave() { a.using.Done() }
