package script

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"gotycoon/db"
	"gotycoon/internal/klog"
)

// Statuses of a call. A procedure returns one of them; any other number means Internal.
const (
	Success    = 0 // RVSUCCESS
	NoImpl     = 1 // RVENOIMPL, and for a procedure that the script does not have
	Invalid    = 2 // RVEINVALID
	Logic      = 3 // RVELOGIC
	Unavailing = 4 // without a constant in the original, which answers as for a time-out
	Internal   = 5 // RVEINTERNAL, and for an error in the script
)

// Options of a Pool.
type Options struct {
	Path    string           // the script (-scr)
	Catalog *db.View         // the server's databases
	Workers int              // interpreters (-th); 0 means 16
	Time    time.Duration    // how long a call may take (-scrtime); 0: for ever
	Memory  int64            // bytes that an interpreter may hold on to (-scrmem); 0: any number
	Room    int64            // bytes of large texts and tables, without Memory; 0: any number
	Logger  *slog.Logger     // nil means silent
	Exit    func(status int) // what os.exit does; nil: it raises an error
}

func (o *Options) setDefaults() {
	if o.Workers <= 0 {
		o.Workers = 16
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// shared is what the interpreters of a Pool share. Scripts see nothing of it but the databases.
type shared struct {
	opts   Options
	holds  holds
	files  files
	room   room          // of all interpreters
	closed chan struct{} // closed by Stop
}

// newRoom returns the room of one interpreter. With Options.Memory the room is that limit.
// Otherwise it is half of the common room, but at most the longest text, so that one greedy
// interpreter leaves something for the others.
func (p *shared) newRoom() *room {
	if p.opts.Memory > 0 {
		return &room{limit: p.opts.Memory}
	}
	return &room{limit: min(p.opts.Room/2, maxText), above: &p.room}
}

// stopped reports whether Stop has been called.
func (p *shared) stopped() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}

func (p *shared) error(format string, args ...any) {
	p.log(slog.LevelError, fmt.Sprintf(format, args...))
}

func (p *shared) log(level slog.Level, line string) {
	p.opts.Logger.Log(context.Background(), level, line)
}

// logLevel returns the level of a kind of line, as scripts name it.
func logLevel(kind string) slog.Level {
	switch strings.ToLower(kind) {
	case "info":
		return slog.LevelInfo
	case "system":
		return klog.LevelSystem
	case "error":
		return slog.LevelError
	}
	return slog.LevelDebug
}
