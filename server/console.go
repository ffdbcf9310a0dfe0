package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"gotycoon/admin"
	"gotycoon/admin/api"
	"gotycoon/admin/console"
	"gotycoon/internal/procinfo"
	"gotycoon/replication"
	"gotycoon/snapshot"
)

// mountConsole adds the console and what it asks to the admin listener, before there is anything to see.
func (p *process) mountConsole(s *admin.Server) {
	p.admin.api = api.New(api.Options{
		Version: productVersion, Revision: admin.Revision(), Started: p.started, Ready: p.ready, Fixed: p.fixed,
		Allow: p.consoleAllows, Pages: p.pages, Proves: p.proves(), Logger: p.log.Logger, Memory: &p.tuned.limits,
	})
	p.admin.api.Mount(s)
	console.Mount(s)
}

// consoleAllows returns why a request to the console is refused: where the data port is protected by default, so are the data there, also
// on a listener with an address of its own, which is for metrics.
func (p *process) consoleAllows(r *http.Request) error {
	if !p.access.Protects() {
		return nil // the listener has asked
	}
	return p.access.Authorize(r, false)
}

// fixed says why nobody can change anything with the console.
func (p *process) fixed() string {
	switch {
	case p.cfg.Admin.ConsoleReadOnly:
		return "The console only shows: the server was started with -console-read-only."
	case p.cfg.ReadOnly:
		return "The server is read-only: it was started with -ord."
	}
	return ""
}

// openConsole tells the console what there is. The databases are open, and so are the services.
func (e *export) openConsole(running running) {
	p := e.p
	host, _ := os.Hostname() // shown only
	s := api.Sources{
		Catalog: p.catalog, Meter: p.admin.meter, Ballast: ballastSize, Slow: p.cfg.Admin.Slow, Protocols: e.protocols, Ports: e.ports,
		Identity: api.Identity{Host: host, Address: net.JoinHostPort(p.cfg.Host, strconv.Itoa(p.cfg.Port)), ServerID: p.cfg.ServerID},
		Facts:    p.facts, Settings: p.settings, Services: map[string]api.Show{},
	}
	if p.follower != nil {
		s.Follower, s.Master = p.replicationNow, p.masterNow
	}
	if p.catalog.Log() != nil {
		s.Replicas = p.replicasNow
	}
	if p.snapshots != nil {
		s.Snapshots = snapshotConsole{p.snapshots}
	}
	for _, one := range running {
		s.Services[one.Name()] = one.Show
	}
	p.admin.api.Open(s)
}

// closeConsole returns when the console does not look at anything any more.
func (p *process) closeConsole() {
	if p.admin.api != nil {
		p.admin.api.Close()
	}
}

// masterNow is what the console wants to know of the replication from a master beyond the metrics.
func (p *process) masterNow() api.Master {
	m, st := p.follower.Master(), p.follower.Status()
	if m.Host == "" {
		return api.Master{}
	}
	now := api.Master{Address: net.JoinHostPort(m.Host, strconv.Itoa(m.Port)), Trouble: st.Trouble}
	if st.State == replication.Copying {
		now.Copy = fmt.Sprintf("database %d, %d of %d records", st.Copy.DB, st.Copy.Records, st.Copy.Total)
	}
	return now
}

// snapshotConsole shows snapshots to the console.
type snapshotConsole struct{ *snapshots }

var (
	errSnapshotBusy   = errors.New("snapshots are being taken already")
	errSnapshotFailed = errors.New("at least one database has no new snapshot: the log says why")
)

// Take implements api.Snapshots.
func (s snapshotConsole) Take(ctx context.Context) error {
	if !s.mu.TryLock() {
		return errSnapshotBusy
	}
	defer s.mu.Unlock()
	if !s.takeAllLocked(newPauses(ctx.Done()).pause) {
		return errSnapshotFailed
	}
	return nil
}

// State implements api.Snapshots.
func (s snapshotConsole) State() (api.SnapshotState, error) {
	state := api.SnapshotState{
		Dir: s.opts.Dir, Every: max(0, time.Duration(s.every.every.Load()).Seconds()), Compressor: s.opts.Compressor.String(),
		Rounds: s.stats.rounds.Load(), Failures: s.stats.failed.Load(), Seconds: time.Duration(s.stats.nanos.Load()).Seconds(),
		Files: []api.SnapshotFile{},
	}
	files, err := snapshot.List(s.opts.FS, s.opts.Dir)
	if err != nil {
		return state, err
	}
	for _, f := range files {
		row := api.SnapshotFile{
			Path: f.Path, Database: f.Index, Time: f.Header.Stamp.Time().UnixMilli(), Stamp: uint64(f.Header.Stamp), Records: f.Header.Count,
		}
		if d := s.catalog.Numbered(f.Index); d != nil {
			row.Name = d.Name()
		}
		if info, err := s.opts.FS.Stat(f.Path); err == nil {
			row.Bytes = info.Size()
		}
		if f.Err != nil {
			row.Error, row.Time = unnamed(f.Err).Error(), 0
		}
		state.Files = append(state.Files, row)
	}
	return state, nil
}

// facts is what there is to know about process and machine.
func (p *process) facts() []api.Section {
	info := procinfo.Read()
	return []api.Section{
		{Title: "Program", Rows: []api.Fact{
			{Name: "gotycoon", Value: productVersion},
			{Name: "Revision", Value: admin.Revision()},
			{Name: "Speaks as", Value: Version},
			{Name: "Go", Value: strings.TrimPrefix(runtime.Version(), "go")},
			{Name: "Process", Value: strconv.Itoa(os.Getpid())},
			{Name: "Started", Value: p.started.Format(time.RFC3339)},
			{Name: "Durability", Value: strings.TrimPrefix(p.durability(), "durability: ")},
		}},
		{Title: "Machine", Rows: []api.Fact{
			{Name: "System", Value: runtime.GOOS + "/" + runtime.GOARCH},
			{Name: "Processors", Value: fmt.Sprintf("%d, used by Go at once: %d", runtime.NumCPU(), runtime.GOMAXPROCS(0))},
			{Name: "Goroutines", Value: strconv.Itoa(runtime.NumGoroutine())},
			{Name: "Memory of the machine", Value: megabytes(info.MemTotal)},
			{Name: "Memory free or cached", Value: megabytes(info.MemFree + info.MemCached)},
			{Name: "Memory of the process", Value: megabytes(info.MemRSS)},
			{Name: "Processor time", Value: (info.User + info.System).Round(time.Millisecond).String()},
		}},
		{Title: "What is on", Rows: p.switches()},
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// switches tells what is on, and how to switch on what is not.
func (p *process) switches() []api.Fact {
	c := &p.cfg
	memcached, _ := c.Plugins.memcache()
	return []api.Fact{
		{Name: "Data port", Value: net.JoinHostPort(c.Host, strconv.Itoa(c.Port))},
		portFact("Memcached", memcached.Port, c.Plugins.MemcachePort == 0 && c.Plugins.Server == "", "-memcache-port PORT"),
		portFact("Locks", c.Services.LockPort, c.Services.LockPort == 0, "-lock-port PORT"),
		portFact("Counters", c.Services.CounterPort, c.Services.CounterPort == 0, "-counter-port PORT"),
		portFact("Sequences", c.Services.SequencePort, c.Services.SequencePort == 0, "-sequence-port PORT"),
		portFact("Quotas", c.Services.QuotaPort, c.Services.QuotaPort == 0, "-quota-port PORT"),
		textFact("Update log", c.UpdateLog, "-ulog DIR"),
		textFact("Snapshots", c.Snapshots.Dir, "-bgs DIR"),
		textFact("Replication from", p.masterIfAny(), "-mhost HOST -rts FILE"),
		textFact("Access file", c.Access.Path, "-access FILE"),
	}
}

func (p *process) masterIfAny() string {
	if p.follower == nil {
		return ""
	}
	return p.masterNow().Address
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
func (p *process) settings() []api.Setting {
	var all []api.Setting
	for _, s := range p.tuned.Effective() {
		all = append(all, api.Setting(s))
	}
	return all
}
