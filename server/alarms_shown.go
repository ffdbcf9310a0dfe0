package server

import (
	"strings"
	"time"

	"gotycoon/admin/api"
	"gotycoon/internal/metrics"
)

// report adds a row for each alarm: alarm_disk for the alarm disk. The original has no such rows.
func (a *alarms) report(rows map[string]string) {
	for _, one := range a.look(time.Now()) {
		rows["alarm_"+strings.ReplaceAll(one.name, "-", "_")] = one.String()
	}
}

// shown is what the banner of the console says.
func (a *alarms) shown() []api.Alarm {
	list := []api.Alarm{}
	for _, one := range a.look(time.Now()) {
		list = append(list, api.Alarm{Name: one.name, Text: one.text, Since: one.since.UnixMilli()})
	}
	return list
}

// alarmMetrics are the metrics of the alarms, and of what is counted beside them.
func alarmMetrics() []metrics.Definition {
	return []metrics.Definition{
		metrics.Define("gotycoon_alarm", metrics.Gauge, "1 while an alarm is present: see the table of alarms.", "alarm"),
		metrics.Define("gotycoon_alarm_since_timestamp_seconds", metrics.Gauge, "Since when it has been present. Only alarms that are.", "alarm"),
		metrics.Define("gotycoon_certificate_expiry_timestamp_seconds", metrics.Gauge,
			"When a certificate that this server shows expires: that of its ports, or that for its master and its cluster. Only with TLS.", "certificate"),
		metrics.Define("gotycoon_panics_total", metrics.Counter, "Requests and pieces of work that a mistake in the program has ended. The log has the stack of each."),
	}
}

// alarmFigures returns the metrics of the alarms.
func alarmFigures(a *alarms, c certificates, log logger) metrics.Source {
	return metrics.Source{Definitions: alarmMetrics(), Read: func(put metrics.Put) {
		present := map[string]time.Time{}
		for _, one := range a.look(time.Now()) {
			present[one.name] = one.since
		}
		for _, k := range a.kinds {
			at, is := present[k.name]
			if !is {
				put("gotycoon_alarm", 0, k.name)
				continue
			}
			put("gotycoon_alarm", 1, k.name)
			put("gotycoon_alarm_since_timestamp_seconds", float64(at.UnixMilli())/1e3, k.name)
		}
		for _, one := range c {
			if at, has := one.expires(); has {
				put("gotycoon_certificate_expiry_timestamp_seconds", float64(at.Unix()), one.of)
			}
		}
		put("gotycoon_panics_total", float64(log.panics()))
	}}
}
