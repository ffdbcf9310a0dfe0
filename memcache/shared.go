package memcache

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"gotycoon/access"
	"gotycoon/db"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
)

// Options of a Server.
type Options struct {
	Config

	DB      *db.DB        // the database that is served; nobody else may call its Watch
	Started time.Time     // when the process began, for stats
	Access  *access.Guard // rights of clients; nil: all of them for everybody
	Logger  *slog.Logger  // nil means silent

	Forward  *netio.Forward    // moves updates to the primary; nil: this server serves them
	Meter    *metrics.Meter    // measures connections; nil: nobody does
	Requests *metrics.Protocol // made by NewRequests; nil: requests are not counted
	MaxConns int               // open connections; more are closed at once. 0 means no limit
	Limits   *netio.Limits     // of all connections of the process; nil means none
	Loops    *netio.Loops      // where connections rest; nil: each has a goroutine
}

// shared is what all connections of a Server share.
type shared struct {
	opts   Options
	db     *db.DB
	places map[string]int // index of a word in requestNames
	counts counts
	queues *queues // nil unless Config.Queue
	wins   wins
	flush  flusher
}

// info logs a line about a connection.
func (s *shared) info(format string, args ...any) {
	if s.opts.Logger.Enabled(context.Background(), slog.LevelInfo) {
		s.opts.Logger.Info(fmt.Sprintf(format, args...))
	}
}

// logFailure logs a database error.
func (s *shared) logFailure(err error) {
	s.opts.Logger.Error("database error: " + err.Error())
}

// logs reports whether connections and commands are logged.
func (s *shared) logs() bool {
	return !s.opts.Meter.Sampling() && s.opts.Logger.Enabled(context.Background(), slog.LevelInfo)
}

// base is what all parts of a connection know.
type base struct {
	s      *shared
	db     *db.DB
	io     *netio.Conn
	modern bool
}

// wins remembers for which version of an item a client has been told to compute the item anew (meta
// flags N and R). One client wins; others are told that a client has won. It is in memory only:
// after a restart another client may win.
type wins struct {
	mu    sync.Mutex // protects given
	given map[string]uint64
}

// maxWins is how many versions wins remembers.
const maxWins = 1 << 16

// first reports whether the caller is the first to ask for this version of the item.
func (w *wins) first(key []byte, version uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.given[string(key)] == version {
		return false
	}
	if w.given == nil || len(w.given) >= maxWins {
		w.given = map[string]uint64{}
	}
	w.given[string(key)] = version
	return true
}

// taken reports whether a client has won this version of the item.
func (w *wins) taken(key []byte, version uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.given[string(key)] == version
}

// flusher is the timer of a flush_all with a delay. A later flush_all replaces it.
type flusher struct {
	mu     sync.Mutex // protects the fields below
	server *shared    // nil while closed
	timer  *time.Timer
	due    sync.WaitGroup // the running function of the timer
}

func (f *flusher) open(s *shared) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.server = s
}

// plan replaces the planned clear by one after a delay; with 0 by none.
func (f *flusher) plan(delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget()
	if delay == 0 || f.server == nil {
		return
	}
	s := f.server
	f.due.Add(1)
	f.timer = time.AfterFunc(delay, func() {
		defer f.due.Done()
		if err := s.db.Clear(nil); err != nil {
			s.logFailure(err)
		}
	})
}

// forget drops the planned clear. The caller holds f.mu.
func (f *flusher) forget() {
	if f.timer != nil && f.timer.Stop() {
		f.due.Done()
	}
	f.timer = nil
}

// close drops the planned clear, and waits for one that is running.
func (f *flusher) close() {
	f.mu.Lock()
	f.forget()
	f.server = nil
	f.mu.Unlock()
	f.due.Wait()
}
