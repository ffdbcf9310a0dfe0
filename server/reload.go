package server

import (
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"gotycoon/internal/netio"
)

// Setting is one option as it is in effect, for those who may look at the configuration.
type Setting struct {
	Name   string // of the option
	Value  string // as it is written; empty for a secret, and where there is none
	Source string // "command line", "environment", "FILE:LINE" or "default"
	Reload bool   // it can change while the server runs
	Secret bool   // its value is never shown
}

// ReloadConfig is where the configuration has come from.
type ReloadConfig struct {
	Settings []Setting // all options

	// Again reads everything again; nil: there is no file, and HUP means what it does in the original. The configuration that it
	// returns has Settings too.
	Again func() (Config, error)
}

// live is the part of the configuration that can change while the server runs.
type live struct {
	level     slog.LevelVar
	limits    netio.Limits // of all connections
	snapshots *pace
	sync      *pace
	syncHard  atomic.Bool
	room      atomic.Pointer[LimitsConfig]
	settings  atomic.Pointer[[]Setting]
}

func newLive(cfg *Config) *live {
	l := &live{snapshots: newPace(), sync: newPace()}
	l.set(cfg)
	return l
}

// set puts the values of a configuration into effect.
func (l *live) set(cfg *Config) {
	l.level.Set(cfg.LogLevel)
	l.limits.SetTimeout(cfg.Timeout)
	l.setLimits(cfg.Limits)
	l.snapshots.set(cfg.Snapshots.Interval)
	l.sync.set(cfg.AutoSync)
	l.syncHard.Store(cfg.AutoSyncHard)
	l.settings.Store(&cfg.Reload.Settings)
}

// Effective returns all options as they are in effect.
func (l *live) Effective() []Setting { return *l.settings.Load() }

// reload reads the configuration again and changes what can be changed. After an error everything stays as it is.
func (p *process) reload(sink *sink) {
	p.tell(daemon.SdNotifyReloading)
	defer p.tell(daemon.SdNotifyReady)
	sink.reopen(p.log)
	next, err := p.cfg.Reload.Again()
	if err == nil {
		err = next.check()
	}
	if err != nil {
		p.log.error("reading the configuration again, everything stays as it is: %v", err)
		return
	}
	changed, fixed := changes(p.tuned.Effective(), next.Reload.Settings)
	next.Reload.Settings = merge(p.tuned.Effective(), next.Reload.Settings)
	p.tuned.set(&next)
	p.reloadInterval(next.MasterInterval, changed)
	p.log.system("configuration read again: changed: %s", list(changed))
	if len(fixed) > 0 {
		p.log.error("these options change with the next start only: %s", list(fixed))
	}
}

// reloadInterval tells the follower of a new -riv; a client may have told it another one, which stays otherwise.
func (p *process) reloadInterval(interval time.Duration, changed []string) {
	if p.follower != nil && slices.Contains(changed, "riv") {
		m := p.follower.Master()
		p.follower.Tune(m.Host, m.Port, nil, &interval)
	}
}

func list(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, " ")
}

// changes returns the options that have another value now: those that take effect, and those that cannot.
func changes(old, next []Setting) (changed, fixed []string) {
	for i, s := range next {
		switch was := old[i]; {
		case was.Value == s.Value:
		case s.Reload:
			changed = append(changed, s.Name)
		default:
			fixed = append(fixed, s.Name)
		}
	}
	return changed, fixed
}

// merge returns what is in effect after a reload.
func merge(old, next []Setting) []Setting {
	merged := make([]Setting, len(next))
	for i, s := range next {
		merged[i] = s
		if !s.Reload {
			merged[i] = old[i]
		}
	}
	return merged
}

// pace is an interval at which something is done, and which can change.
type pace struct {
	every   atomic.Int64  // a time.Duration; 0 or less: never
	changed chan struct{} // of one: somebody has set every
}

func newPace() *pace { return &pace{changed: make(chan struct{}, 1)} }

// set changes the interval. The next action comes that long from now; an equal one changes nothing.
func (c *pace) set(every time.Duration) {
	if c.every.Swap(int64(every)) == int64(every) {
		return
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// run calls action from time to time until quit is closed.
func (c *pace) run(quit <-chan struct{}, action func()) {
	for {
		var due <-chan time.Time
		if every := time.Duration(c.every.Load()); every > 0 {
			due = time.After(every)
		}
		select {
		case <-quit:
			return
		case <-c.changed:
		case <-due:
			action()
		}
	}
}
