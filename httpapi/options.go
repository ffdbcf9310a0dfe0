package httpapi

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"gotycoon/db"
	"gotycoon/internal/browser"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
	"gotycoon/internal/opcount"
	"gotycoon/ulog"
)

// Options of a Handler.
type Options struct {
	Catalog *db.View

	Counts   *opcount.Counts // nil: nobody reads the counts
	Signals  *Signals        // nil: a set of its own
	Scripts  Scripts         // nil: the server has no script
	Shared   bool            // the databases are in an engine that several servers share
	Follower Follower        // nil: the server cannot replicate from a master
	Replicas Replicas        // the server's followers; nil: it has no update log
	Watches  Watches         // nil: the server has no update log
	Pages    *browser.Policy // which requests of browsers are served; nil: all
	Logger   *slog.Logger    // nil: silent. Info has a line per request, Error the database errors
	Meters   Meters          // where requests are counted; the zero value: nowhere

	Forward *netio.Forward // moves updates to the primary; nil: this server serves them

	// Claim makes the server the primary of the services; nil: it has no database for them.
	Claim func(force bool) error
	// Cluster is that of which the server is a member; nil: none.
	Cluster Cluster
	// NoData says why this server has no records, with which every request for them is refused;
	// empty: it has.
	NoData string
	// Config is the configuration in effect; nil: nobody may see it.
	Config Config
	// Report adds the rows of report that this package does not know; may be nil.
	Report func(rows map[string]string)

	Console string // address of the admin listener, for GET /; empty: there is none

	MaxWatches int    // calls of watch at a time, see watchers; default 1000
	MaxBehind  uint64 // how many updates a watch that had all of them may lag behind; default a million

	Port   int              // for the Location header
	CmdDir string           // directory of the commands of synchronize; empty means "."
	Now    func() time.Time // default time.Now

	watchers *watchers
}

func (o *Options) setDefaults() {
	if o.Counts == nil {
		o.Counts = new(opcount.Counts)
	}
	if o.Signals == nil {
		o.Signals = NewSignals(nil)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.CmdDir == "" {
		o.CmdDir = "."
	}
	if o.MaxWatches == 0 {
		o.MaxWatches = 1000
	}
	if o.MaxBehind == 0 {
		o.MaxBehind = 1_000_000
	}
	o.watchers = &watchers{most: o.MaxWatches, counts: o.Counts, of: map[string]int{}}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Scripts calls the procedures of the server's script. Call returns 0 for success, and then has
// given the output to out; 1 if there is no such procedure; and else what the procedure has
// returned, or the number of its failure. Its updates are added to owed. An error of heed ends the
// call.
type Scripts interface {
	Call(heed db.Heed, owed *db.Pending, name string, in iter.Seq2[[]byte, []byte],
		out func(key, value []byte)) (status int)
}

// Follower is the server's replication from a master.
type Follower interface {
	// Tune changes the master; an empty host means none. from is the stamp behind which updates are
	// fetched, interval what each of them costs at least; both are left as they are where nil.
	Tune(host string, port int, from *ulog.Stamp, interval *time.Duration)
	// Recopy has all databases replaced by copies of those of the master that Tune names next,
	// whatever they hold.
	Recopy()
	// Position returns the stamp in the master's log up to which everything is in the databases,
	// and whether there is a master.
	Position() (at ulog.Stamp, following bool)
	// AwaitPosition returns the position when it has reached a stamp, or after limit.
	AwaitPosition(want ulog.Stamp, limit time.Duration) ulog.Stamp
}

// Config is the configuration of the server, as it is in effect.
type Config interface {
	// Rows returns all options, or the one with a name: fields NAME=VALUE with blanks between them,
	// of which value is the last. found is false where there is no such option.
	Rows(name string) (names, values []string, found bool)
	// Set gives an option another value, on behalf of who: a user and an address. lasts says
	// whether the server has the value after the next start, and if not, how to keep it.
	Set(name, value, who string) (lasts string, err error)
}

// Cluster is the cluster of the server.
type Cluster interface {
	// Rows describes the members: one row for each, its name the member's, its value fields
	// NAME=VALUE with blanks between them.
	Rows(ctx context.Context) (names, values []string)
	// Elsewhere returns the address of the primary if that is another member; empty: it is not
	// known now.
	Elsewhere() (addr string, away bool)
	// Change has the primary change the cluster, and returns when that is done.
	Change(ctx context.Context, change ClusterChange) error
}

// ClusterChange is a change of a cluster.
type ClusterChange struct {
	Do      string // switchover, add, remove, require
	Name    string // of a member, which is its address
	Witness bool   // with add: it has no data
	Number  int    // with require: followers that must have an update
}

// Replicas are the followers of the server.
type Replicas interface {
	// Rows has a row for each: its name is a number that grows, its value fields NAME=VALUE with
	// blanks between them.
	Rows(now time.Time) (names, values []string)
	// Required is how many of them must have an update before it is answered.
	Required() int
	// Await returns how many followers have acknowledged everything up to a stamp of the update
	// log. It waits until there are n, for limit at most.
	Await(at ulog.Stamp, n int, limit time.Duration) (have int, err error)
}

// Watches begins watches of the update log.
type Watches interface {
	// Watch begins a watch of what is newer than a stamp, or of what happens from now on. Nothing
	// is told that the log has up to since, which matters from the stamp 0 on. required is how many
	// followers must have an update before it is told, below 0 the server's number.
	// room is called before memory is taken for a large update, and when it is given back. The
	// error is ErrGone, a *ulog.GapError or a *ulog.DamageError if the log lacks something newer.
	Watch(after ulog.Stamp, now bool, since ulog.Stamp, required int, room func(bytes int) error) (Watch, error)
}

// Watch hands out the updates of all databases, in the order of the log.
type Watch interface {
	// At returns up to where everything has been handed out.
	At() ulog.Stamp
	// Each calls f for all updates that may be told now, and returns the error of f, or why there
	// is nothing to come: ErrElsewhere, or as Watches.Watch.
	Each(f func(ulog.Entry) error) error
	// Wait returns when there may be more, when the server stops, or after a time.
	Wait(limit time.Duration) error
	// Stopping reports whether the server stops.
	Stopping() bool
	// Behind returns how many updates have not been read; known is false until all had been read.
	Behind() (updates uint64, known bool)
	Close()
}

var (
	// ErrElsewhere ends a watch that this server may not feed any more, and another one can.
	ErrElsewhere = errors.New("this server may not tell what follows: ask another member of its cluster, or later")

	// ErrGone refuses a watch from a stamp behind which the log has no single updates.
	ErrGone = errors.New("the server got what is newer by a copy")
)

// Meters are where the requests of a Handler are counted.
type Meters struct {
	RPC, REST *metrics.Protocol // made by NewMeters; nil: requests are not counted
	Meter     *metrics.Meter    // of all ports, whose requests monitor and hotkeys show; nil: none
	Sampling  bool              // not every request has a line in the log
}
