package server

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"gotycoon/admin/status"
	"gotycoon/binproto"
	"gotycoon/httpapi"
	"gotycoon/replication"
	"gotycoon/ulog"
)

// replicas are the followers of this server.
type replicas struct {
	list   replication.Replicas
	quorum *replication.Quorum // nil without an update log
	// guarded reports whether clients are refused anyhow; set with quorum
	guarded func() bool
}

// source returns what feeds the followers, nil without an update log. Its streams end with done.
func (r *replicas) source(o replication.SourceOptions) *replication.Source {
	if o.Log == nil {
		return nil
	}
	o.Replicas, o.Quorum = &r.list, r.quorum
	return replication.NewSource(o)
}

// forFollowers returns what feeds followers; nil without an update log.
func forFollowers(s *replication.Source) binproto.Source {
	if s == nil {
		return nil // not an interface around nil
	}
	return s
}

// forWatchers returns what feeds clients that watch; nil without an update log.
func forWatchers(s *replication.Source) httpapi.Watches {
	if s == nil {
		return nil
	}
	return watches{s}
}

// watches implements httpapi.Watches.
type watches struct{ source *replication.Source }

// Watch implements httpapi.Watches.
func (w watches) Watch(after ulog.Stamp, now bool, since ulog.Stamp, required int, room func(bytes int) error) (httpapi.Watch, error) {
	began, err := w.source.Watch(after, now, since, required, room)
	if err != nil {
		return nil, watchError(err)
	}
	return watch{began}, nil
}

// watch implements httpapi.Watch.
type watch struct{ *replication.Watch }

// Each implements httpapi.Watch.
func (w watch) Each(f func(ulog.Entry) error) error { return watchError(w.Watch.Each(f)) }

// watchError returns an error in the words of httpapi.
func watchError(err error) error {
	switch {
	case errors.Is(err, replication.ErrElsewhere):
		return fmt.Errorf("%w: %w", httpapi.ErrElsewhere, err)
	case errors.Is(err, replication.ErrCopied):
		return fmt.Errorf("%w: %w", httpapi.ErrGone, err)
	}
	return err
}

// serves reports whether the server with this ID follows this server, so that it hears of changes
// here.
func (r *replicas) serves(sid uint16) bool {
	for _, f := range r.list.List() {
		if f.SID == sid && f.Ours && !f.White {
			return true
		}
	}
	return false
}

// Rows implements httpapi.Replicas.
func (r *replicas) Rows(now time.Time) (names, values []string) {
	for _, f := range r.list.List() {
		names = append(names, strconv.FormatInt(f.ID, 10))
		values = append(values, fmt.Sprintf("peer=%s sid=%d white=%t ours=%t state=%s connected=%.3f position=%d seconds=%s records=%d contact=%.3f",
			f.Peer, f.SID, f.White, f.Ours, f.State, now.Sub(f.Since).Seconds(), f.Position, lagSeconds(f.Seconds), f.Records,
			max(0, now.Sub(f.Contact).Seconds())))
	}
	return names, values
}

// lagSeconds is a number of seconds as clients see it, -1 where it is not known.
func lagSeconds(seconds float64) string {
	if seconds < 0 {
		return "-1"
	}
	return fmt.Sprintf("%.3f", seconds)
}

// report adds our own rows about the followers, when there are any: their number, and how far the
// slowest is behind. When the lag of one follower is not known, the slowest is not known either.
func (r *replicas) report(rows map[string]string) {
	list := r.list.List()
	if len(list) == 0 {
		return
	}
	seconds, records := list[0].Seconds, list[0].Records
	for _, f := range list {
		seconds = slower(seconds, f.Seconds)
		records = slower(records, f.Records)
	}
	rows["repl_slave_count"] = strconv.Itoa(len(list))
	rows["repl_slave_lag_seconds"] = lagSeconds(seconds)
	rows["repl_slave_lag_records"] = strconv.FormatInt(records, 10)
}

// slower returns the larger of two lags, replication.Unknown where one of them is not known.
func slower[T int64 | float64](a, b T) T {
	if a < 0 || b < 0 {
		return replication.Unknown
	}
	return max(a, b)
}

// figures are the metrics of the followers.
func (r *replicas) figures() []status.Replica {
	list := r.list.List()
	all := make([]status.Replica, len(list))
	for i, f := range list {
		all[i] = status.Replica{
			SID: strconv.Itoa(int(f.SID)), Peer: withoutPort(f.Peer), State: string(f.State), Seconds: f.Seconds, Records: f.Records, Contact: f.Contact,
		}
	}
	return all
}

// withoutPort is an address that stays the same when a follower comes again.
func withoutPort(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return addr
}
