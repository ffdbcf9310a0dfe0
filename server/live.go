package server

import (
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"gotycoon/internal/netio"
	"gotycoon/ulog"
)

// live is the part of the configuration that can change while the server runs: each value takes
// effect where it is read next, without a lock. All else is in Config. The table of options in
// cmd/ktserver marks the options that can change.
type live struct {
	level     slog.LevelVar
	limits    netio.Limits  // of all connections
	snapshots *pace         // -bgsi
	sync      *pace         // -asi
	syncHard  atomic.Bool   // -ash
	compact   atomic.Uint64 // -compact-ratio, as the bits of a float64
	room      atomic.Pointer[LimitsConfig]
	keep      atomic.Pointer[ulog.Limits] // -ulog-keep-age, -ulog-keep-size, -ulog-keep-count

	mu         sync.Mutex // held while options change
	settings   atomic.Pointer[[]Setting]
	configured atomic.Pointer[[]Setting] // as they would be after a start
}

func newLive(cfg *Config) *live {
	l := &live{snapshots: newPace(), sync: newPace()}
	l.set(cfg)
	l.configured.Store(&cfg.Reload.Settings)
	return l
}

// set puts the values of a configuration into effect.
func (l *live) set(cfg *Config) {
	limits := cfg.Limits
	l.level.Set(cfg.LogLevel)
	l.limits.SetTimeout(cfg.Timeout)
	l.limits.SetLargest(limits.Request)
	l.limits.SetBudget(limits.inFlight())
	l.limits.SetRequest(limits.RequestTime)
	l.limits.SetAnswer(limits.AnswerTime)
	l.limits.SetIdle(limits.Idle)
	l.compact.Store(math.Float64bits(cfg.CompactRatio))
	l.room.Store(&limits)
	keep := cfg.Retention.limits()
	l.keep.Store(&keep)
	l.snapshots.set(cfg.Snapshots.Interval)
	l.sync.set(cfg.AutoSync)
	l.syncHard.Store(cfg.AutoSyncHard)
	l.settings.Store(&cfg.Reload.Settings)
}

// compactRatio returns -compact-ratio.
func (l *live) compactRatio() float64 { return math.Float64frombits(l.compact.Load()) }

// retention returns the limits of the update log.
func (l *live) retention() ulog.Limits { return *l.keep.Load() }

// effective returns all options as they are in effect.
func (l *live) effective() []Setting { return *l.settings.Load() }

// reload puts a configuration that has been read again into effect, except for options that cannot
// change. changed are the names of the options that have changed; fixed are the names of options
// that cannot change and were given another value.
func (l *live) reload(next Config) (changed, fixed []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.configured.Store(&next.Reload.Settings)
	return l.take(next)
}

// change puts into effect what how makes of the options in effect. For the next start the
// configuration stays what it is.
func (l *live) change(how func(effective []Setting) (Config, error)) (changed []string, next Config, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if next, err = how(l.effective()); err != nil {
		return nil, next, err
	}
	changed, _ = l.take(next)
	return changed, next, nil
}

// take puts what can change into effect. mu is held.
func (l *live) take(next Config) (changed, fixed []string) {
	changed, fixed = changes(l.effective(), next.Reload.Settings)
	next.Reload.Settings = merge(l.effective(), next.Reload.Settings)
	l.set(&next)
	return changed, fixed
}

// list is names for a log line.
func list(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, " ")
}

// changes returns the options that have another value now: those that take effect, and those that
// cannot.
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

// merge returns the options that are in effect after a reload.
func merge(old, next []Setting) []Setting {
	merged := slices.Clone(next)
	for i := range merged {
		if !merged[i].Reload {
			merged[i] = old[i]
		}
	}
	return merged
}
