// Package api answers the console with JSON, on the admin listener under /api/. Reading needs the
// right to read the whole server. Changes, and backups, need admin access.
//
// A web page of another site may make a user's browser send requests here. So
//
//   - a change needs the header X-Gotycoon-Console, which a page of another site cannot send, and
//     package browser must not recognise such a page;
//   - a request from this machine must name this machine as its host. A page whose name is resolved
//     to our address (DNS rebinding) fails that test.
//
// Options.Fixed can forbid all changes.
//
// An API answers from New on. It has something to show between Open and Close.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"gotycoon/admin"
	"gotycoon/admin/status"
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
	Ports     []status.Port

	Follower  func() status.Follower // replication from a master
	Master    func() Master
	Replicas  func() []status.Replica // followers of this server; nil: not known
	Alarms    func() []Alarm          // what every page must show, the worst first; nil: none
	Snapshots Snapshots
	Cluster   Cluster
	Engine    Engine // nil: the server has its databases to itself

	Services map[string]Show // by the name of the service

	Facts    func() []Section // about process and machine
	Settings func() []Setting // the configuration in effect; nil: not known
}

// Master describes the replication from a master, beyond what status.Follower has.
type Master struct {
	Address string // empty: there is none
	Trouble string // why the replication does not advance; empty: it does
	Copy    string // progress of a copy; empty: there is none
}

// Alarm is a condition that whoever runs the server must know of.
type Alarm struct {
	Name  string `json:"name"`
	Text  string `json:"text"`
	Since int64  `json:"since"` // UNIX milliseconds
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
