package httpapi

import (
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
	Follower Follower        // nil: the server cannot replicate from a master
	Replicas Replicas        // the server's followers; nil: it has no update log
	Pages    *browser.Policy // which requests of browsers are served; nil: all
	Logger   *slog.Logger    // nil: silent. Info has a line per request, Error the database errors
	Meters   Meters          // where requests are counted; the zero value: nowhere

	Forward *netio.Forward // moves updates to the primary; nil: this server serves them

	// Claim makes the server the primary of the services; nil: it has no database for them.
	Claim func(force bool) error
	// Report adds the rows of report that this package does not know; may be nil.
	Report func(rows map[string]string)

	Port   int              // for the Location header
	CmdDir string           // directory of the commands of synchronize; empty means "."
	Now    func() time.Time // default time.Now
}

func (o *Options) setDefaults() {
	if o.Counts == nil {
		o.Counts = new(opcount.Counts)
	}
	if o.Signals == nil {
		o.Signals = NewSignals()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.CmdDir == "" {
		o.CmdDir = "."
	}
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
}

// Replicas lists the followers of the server: one row each, its name a number that grows, its value
// fields NAME=VALUE with blanks between them.
type Replicas interface {
	Rows(now time.Time) (names, values []string)
}

// Meters are where the requests of a Handler are counted.
type Meters struct {
	RPC, REST *metrics.Protocol // made by NewMeters; nil: requests are not counted
	Sampling  bool              // not every request has a line in the log
}
