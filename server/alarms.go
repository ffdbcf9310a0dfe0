package server

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"gotycoon/internal/klog"
)

// The names of the alarms. docs/monitoring.md explains each.
const (
	alarmLog        = "log-failed"
	alarmEngine     = "engine"
	alarmSignals    = "signals"
	alarmDisk       = "disk"
	alarmMemory     = "memory"
	alarmSize       = "size"
	alarmFollowers  = "followers"
	alarmDegraded   = "degraded"
	alarmStalled    = "replication-stalled"
	alarmGap        = "replication-gap"
	alarmParted     = "replication-parted"
	alarmCopying    = "replication-copying"
	alarmLag        = "replication-lag"
	alarmCluster    = "cluster"
	alarmFile       = "file"
	alarmPassedOver = "passed-over"
	alarmTLS        = "certificate"
)

// alarm is one condition that whoever runs the server must know of.
type alarm struct {
	name  string
	text  string    // what is wrong, of which disk, limit, server or file, and what to do
	plain string    // what probes say instead, where the text names what not everybody may know; else empty
	since time.Time // this and kind are filled in by alarms
	kind  *alarmKind
}

// String is the alarm as the report shows it.
func (a *alarm) String() string {
	return fmt.Sprintf("%s (since %s)", a.text, instant(a.since))
}

// open is the alarm as /readyz shows it, which programs of all kinds may ask.
func (a *alarm) open() string {
	return fmt.Sprintf("%s (since %s)", cmp.Or(a.plain, a.text), instant(a.since))
}

// alarmKind is what holds for all alarms of one name.
type alarmKind struct {
	name  string
	away  bool          // clients that update should use another server: /readyz answers 503
	reads bool          // clients that only read should do so too
	after time.Duration // the condition counts when it has lasted so long
	// silent: the part that raises the alarm logs its beginning and end with details of its own.
	silent bool
}

// unreachedAfter is for how long a follower may be without its master, and a server without the
// signals of others, before that is an alarm: a master that restarts, or a cluster that elects
// another primary, is away for less.
const unreachedAfter = 5 * time.Second

// alarmsEvery is how often the server looks for alarms though nobody asks.
const alarmsEvery = time.Second

// alarmKinds lists all alarms, the worst first.
func alarmKinds() []alarmKind {
	return []alarmKind{
		{name: alarmLog, away: true, reads: true, silent: true},
		{name: alarmEngine, away: true, reads: true},
		{name: alarmDisk, away: true},
		{name: alarmMemory, away: true},
		{name: alarmSize, away: true},
		{name: alarmFollowers, away: true, silent: true},
		{name: alarmDegraded, silent: true},
		{name: alarmCluster, silent: true},
		{name: alarmParted, away: true, reads: true, silent: true},
		{name: alarmGap, away: true, reads: true, silent: true},
		{name: alarmCopying, away: true, reads: true, silent: true},
		{name: alarmStalled, after: unreachedAfter},
		{name: alarmLag, away: true, reads: true},
		{name: alarmFile, silent: true},
		{name: alarmSignals, after: unreachedAfter},
		{name: alarmTLS},
		{name: alarmPassedOver, silent: true},
	}
}

// alarms is the list of the alarms that are present, from which /readyz, the metrics, the console's
// banner, the report and the log are made. Nothing else decides that something is an alarm.
//
// Parts do not raise alarms: each has a function that returns the alarms of its present state, so
// that an alarm cannot outlive its reason. look asks them all, once a second, when updates begin or
// cease to be refused, and whenever somebody wants to know. It notes since when each alarm has been
// there.
type alarms struct {
	log     logger
	kinds   []alarmKind
	sources []func(now time.Time) []alarm // set before the first look

	mu    sync.Mutex // held while the sources are asked: their locks are taken below it
	since map[string]time.Time
	told  map[string]bool // the log has the beginning
}

func newAlarms(log logger) *alarms {
	return &alarms{log: log, kinds: alarmKinds(), since: map[string]time.Time{}, told: map[string]bool{}}
}

// look returns the alarms that are present, the worst first, and logs those that have begun or
// ended since the last look.
func (a *alarms) look(now time.Time) (present []alarm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, plain := map[string]string{}, map[string]string{}
	for _, source := range a.sources {
		for _, one := range source(now) {
			found[one.name] = joined(found[one.name], strings.ReplaceAll(one.text, "\n", "; "))
			plain[one.name] = joined(plain[one.name], strings.ReplaceAll(cmp.Or(one.plain, one.text), "\n", "; "))
		}
	}
	for i := range a.kinds {
		k := &a.kinds[i]
		text, is := found[k.name]
		if !is {
			a.end(k, now)
			continue
		}
		if _, was := a.since[k.name]; !was {
			a.since[k.name] = now
		}
		one := alarm{k.name, text, plain[k.name], a.since[k.name], k}
		if now.Sub(one.since) < k.after {
			continue
		}
		if !a.told[k.name] {
			a.told[k.name] = true
			a.say(k, slog.LevelError, "alarm %s: %s", k.name, text)
		}
		present = append(present, one)
	}
	return present
}

// end forgets an alarm whose condition does not hold any more. mu is held.
func (a *alarms) end(k *alarmKind, now time.Time) {
	if a.told[k.name] {
		a.say(k, klog.LevelSystem, "alarm %s is over: seconds=%.0f", k.name, now.Sub(a.since[k.name]).Seconds())
	}
	delete(a.since, k.name)
	delete(a.told, k.name)
}

func (a *alarms) say(k *alarmKind, level slog.Level, format string, args ...any) {
	if !k.silent {
		a.log.print(level, format, args)
	}
}

// joined puts texts of one alarm together: two certificates may expire at the same time.
func joined(texts, text string) string {
	if texts == "" {
		return text
	}
	return texts + ". " + text
}
