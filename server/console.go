package server

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"gotycoon/access"
	"gotycoon/admin"
	"gotycoon/admin/api"
	"gotycoon/admin/console"
	"gotycoon/internal/browser"
	"gotycoon/internal/netio"
	"gotycoon/internal/procinfo"
	"gotycoon/internal/version"
)

// consoleOptions are what the console needs before the databases are open.
type consoleOptions struct {
	AdminConfig
	ReadOnly bool // Config.ReadOnly
	Started  time.Time
	Health   *health
	Access   *access.Guard
	Pages    *browser.Policy
	Limits   *netio.Limits
	Log      logger
}

// newConsole returns the console, which shows nothing yet.
func newConsole(o consoleOptions) *api.API {
	fixed := func() string {
		switch {
		case o.ConsoleReadOnly:
			return "The console only shows: the server was started with -console-read-only."
		case o.ReadOnly:
			return "The server is read-only: it was started with -ord."
		}
		return ""
	}
	// Where the data port is protected by default, so are the data in the console, also on a
	// listener with an address of its own, which is for metrics. Elsewhere the listener has asked
	// already.
	allow := func(r *http.Request) error {
		if !o.Access.Protects() {
			return nil
		}
		return o.Access.Authorize(r, false)
	}
	built := version.Current()
	return api.New(api.Options{
		Version: built.Version, Revision: built.Revision, Started: o.Started, Ready: o.Health.ready, Fixed: fixed,
		Allow: allow, Pages: o.Pages, Proves: proves(o.Access), Logger: o.Log.Logger, Memory: o.Limits,
	})
}

// mountConsole adds the console and the paths of its requests to the admin listener.
func mountConsole(a *api.API, s *admin.Server) {
	a.Mount(s)
	console.Mount(s)
}

// shown is what the console shows of a server whose parts are open.
type shown struct {
	published
	cfg     *Config
	options *settings
	started time.Time
}

// openConsole has the console show the parts.
func openConsole(a *api.API, s *shown, e *export) {
	host, _ := os.Hostname() // shown only
	sources := api.Sources{
		Catalog: s.catalog, Meter: s.meters.meter, Ballast: ballastSize, Slow: s.cfg.Admin.Slow, Protocols: e.protocols, Ports: e.ports,
		Identity: api.Identity{Host: host, Address: net.JoinHostPort(s.cfg.Host, strconv.Itoa(s.cfg.Port)), ServerID: s.cfg.ServerID},
		Facts:    s.facts, Settings: s.settings, Alarms: s.alarms.shown, Services: map[string]api.Show{},
	}
	if s.following.follower != nil {
		sources.Follower, sources.Master = s.following.figures, s.following.master
	}
	if s.catalog.Log() != nil {
		sources.Replicas = s.replicas.figures
	}
	if s.cluster != nil { // not an interface around nil
		sources.Cluster = s.cluster
	}
	if s.engine != nil {
		sources.Engine = s.engine
	}
	if s.snapshots != nil {
		sources.Snapshots = snapshotConsole{s.snapshots}
	}
	for _, service := range s.services {
		sources.Services[service.Name()] = service.Show
	}
	a.Open(sources)
}

// facts are what there is to know about process and machine.
func (s *shown) facts() []api.Section {
	info, built := procinfo.Read(), version.Current()
	return []api.Section{
		{Title: "Program", Rows: []api.Fact{
			{Name: "gotycoon", Value: built.Version},
			{Name: "Revision", Value: built.Revision},
			{Name: "Speaks as", Value: Version},
			{Name: "Go", Value: strings.TrimPrefix(built.Go, "go")},
			{Name: "Process", Value: strconv.Itoa(os.Getpid())},
			{Name: "Started", Value: s.started.UTC().Format(time.DateTime) + " UTC"},
			{Name: "Durability", Value: strings.TrimPrefix(durability(s.cfg), "durability: ")},
		}},
		{Title: "Machine", Rows: []api.Fact{
			{Name: "System", Value: built.System},
			{Name: "Processors", Value: fmt.Sprintf("%d, used by Go at once: %d", runtime.NumCPU(), runtime.GOMAXPROCS(0))},
			{Name: "Goroutines", Value: strconv.Itoa(runtime.NumGoroutine())},
			{Name: "Memory of the machine", Value: memory(info.MemTotal)},
			{Name: "Memory free or cached", Value: memory(info.MemFree + info.MemCached)},
			{Name: "Memory of the process", Value: memory(info.MemRSS)},
			{Name: "Processor time", Value: (info.User + info.System).Round(time.Millisecond).String()},
		}},
		{Title: "What is on", Rows: s.switches()},
	}
}

// memory is an amount for people.
func memory(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// switches say what is on, and how to switch on what is not.
func (s *shown) switches() []api.Fact {
	c := s.cfg
	memcached, _ := c.Plugins.memcache()
	facts := []api.Fact{
		{Name: "Data port", Value: net.JoinHostPort(c.Host, strconv.Itoa(c.Port))},
		portFact("Memcached", memcached.Port, c.Plugins.MemcachePort == 0 && c.Plugins.Server == "", "-memcache-port PORT"),
		portFact("Locks", c.Services.LockPort, c.Services.LockPort == 0, "-lock-port PORT"),
		portFact("Counters", c.Services.CounterPort, c.Services.CounterPort == 0, "-counter-port PORT"),
		portFact("Sequences", c.Services.SequencePort, c.Services.SequencePort == 0, "-sequence-port PORT"),
		portFact("Quotas", c.Services.QuotaPort, c.Services.QuotaPort == 0, "-quota-port PORT"),
		textFact("Update log", c.UpdateLog, "-ulog DIR"),
		textFact("Snapshots", c.Snapshots.Dir, "-bgs DIR"),
		textFact("Replication from", s.following.master().Address, "-mhost HOST -rts FILE"),
		textFact("Access file", c.Access.Path, "-access FILE"),
	}
	if c.Cluster.on() {
		facts = append(facts, api.Fact{Name: "Cluster", Value: c.Cluster.Name})
	}
	return facts
}

func portFact(name string, port int, off bool, option string) api.Fact {
	if off {
		return api.Fact{Name: name, Off: option}
	}
	return api.Fact{Name: name, Value: "port " + strconv.Itoa(port)}
}

func textFact(name, value, option string) api.Fact {
	if value == "" {
		return api.Fact{Name: name, Off: option}
	}
	return api.Fact{Name: name, Value: value}
}

// settings are all options as they are in effect.
func (s *shown) settings() []api.Setting {
	var all []api.Setting
	for _, s := range s.options.effective() {
		all = append(all, api.Setting(s))
	}
	return all
}
