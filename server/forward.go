package server

import (
	"errors"
	"strconv"
	"time"

	"gotycoon/internal/forward"
	"gotycoon/internal/metrics"
)

var (
	errForwardMaster = errors.New("-forward needs what following a master needs: -sid and -rts")
	errForwardMember = errors.New("-forward needs proof that this server is a member of the cluster: -cluster-secret, or a certificate to show " +
		"the primary, -master-tls-cert")
)

// checkForward finds what is missing for -forward.
func checkForward(rtsPath, secret, certificate string) error {
	switch {
	case rtsPath == "":
		return errForwardMaster
	case secret == "" && certificate == "":
		return errForwardMember
	}
	return nil
}

// openForward returns what moves connections to the primary: the master that this server follows.
func openForward(live *live, f *following, m *members, primary func() (addr string, away bool), log logger) *forward.Forwarder {
	return forward.New(forward.Options{
		Primary: primary, Dial: m.dial, Lag: func() time.Duration { return f.staleness(time.Now()) },
		Timeout: live.limits.Timeout, Idle: live.limits.Idle, Logger: log.Logger,
	})
}

// watchPrimary returns the function that looks after moved connections. When this server has become
// a follower it also cuts the clients of its services: what they hold here, locks for example, is
// worth nothing any more, and the primary may give it to others.
func watchPrimary(f *forward.Forwarder, all running) (look func()) {
	was := f.Away()
	return func() {
		f.Look(time.Now())
		away := f.Away()
		if away && !was {
			all.cut()
		}
		was = away
	}
}

// reportForward adds the rows about moved connections, on servers that move them.
func reportForward(f *forward.Forwarder, rows map[string]string) {
	if f == nil {
		return
	}
	n := f.Figures()
	rows["forward_conn_count"] = strconv.Itoa(n.Moved)
	rows["forward_conn_total"] = strconv.FormatUint(n.Total, 10)
	rows["forward_failures"] = strconv.FormatUint(n.Failed, 10)
}

// forwardMetrics are the definitions of the metrics of moved connections.
func forwardMetrics() []metrics.Definition {
	return []metrics.Definition{
		metrics.Define("gotycoon_forward_connections", metrics.Gauge, "Connections of clients that have moved to the primary and are open."),
		metrics.Define("gotycoon_forward_connections_total", metrics.Counter, "Connections of clients that have moved to the primary."),
		metrics.Define("gotycoon_forward_failures_total", metrics.Counter, "Updates of clients that were refused because the primary was not reached."),
	}
}

// forwardFigures returns the metrics of moved connections.
func forwardFigures(f *forward.Forwarder) metrics.Source {
	return metrics.Source{Definitions: forwardMetrics(), Read: func(put metrics.Put) {
		n := f.Figures()
		put("gotycoon_forward_connections", float64(n.Moved))
		put("gotycoon_forward_connections_total", float64(n.Total))
		put("gotycoon_forward_failures_total", float64(n.Failed))
	}}
}
