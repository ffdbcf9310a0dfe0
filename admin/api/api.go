package api

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"gotycoon/admin"
	"gotycoon/admin/figures"
	"gotycoon/db"
	"gotycoon/internal/browser"
	"gotycoon/internal/metrics"
)

// Options of an API.
type Options struct {
	Version  string          // of the product
	Revision string          // that the product was built from
	Started  time.Time       // start of the process
	Ready    func() []string // reasons to use another server; nil: there are none
	Fixed    func() string   // why nothing may be changed here, "" if it may; nil: it may
	Logger   *slog.Logger    // gets a line for each change; nil: silent
	Memory   Memory          // of requests and answers; nil: any

	// Pages decides about requests of browsers: it knows the names of this machine, and the sites
	// whose pages may send changes.
	Pages *browser.Policy
	// Proves says that the listener checks credentials, so that a request with credentials has
	// proved who sends it.
	Proves bool

	// Allow may refuse a request that the listener has let in; nil: none. The listener checks
	// rights for the server; the API also shows the data.
	Allow func(r *http.Request) error
}

// Sources are the parts that an API shows. A part that is nil is switched off.
type Sources struct {
	Catalog   *db.Catalog // never nil
	Identity  Identity
	Meter     *metrics.Meter
	Ballast   int64         // bytes of Go objects that take no memory, since nobody touches them
	Slow      time.Duration // requests that take longer are kept; 0: none
	Protocols []*metrics.Protocol
	Ports     []figures.Port

	Follower  func() figures.Follower // replication from a master
	Master    func() Master
	Replicas  func() []figures.Replica // followers of this server; nil: not known
	Snapshots Snapshots

	Services map[string]Show // by the name of the service

	Facts    func() []Section // about process and machine
	Settings func() []Setting // the configuration in effect; nil: not known
}

// Master describes the replication from a master, beyond what figures.Follower has.
type Master struct {
	Address string // empty: there is none
	Trouble string // why the replication does not advance; empty: it does
	Copy    string // progress of a copy; empty: there is none
}

// Show returns what the console shows of a service, to be written as JSON: at most limit names that
// begin with prefix, where the service can choose by prefix.
type Show func(prefix string, limit int) (any, error)

// Identity says which server this is.
type Identity struct {
	Host     string `json:"host"`     // of the machine
	Address  string `json:"address"`  // of the data port
	ServerID int    `json:"serverId"` // -1: none
}

// Section is a list of facts about one subject.
type Section struct {
	Title string `json:"title"`
	Rows  []Fact `json:"rows"`
}

// Fact is one fact. Off says how to switch on a part that is off.
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
	Reload bool   `json:"reload,omitempty"` // it can be changed while the server runs
	Secret bool   `json:"secret,omitempty"` // the value is not shown
}

// API answers the console. Close ends its goroutines: the sampler and the tasks that requests have
// started.
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
	using   sync.WaitGroup // requests that use sources, tasks, and the sampler
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
	}
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

// enter returns the sources, nil if there are none. They stay valid until leave is called.
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
