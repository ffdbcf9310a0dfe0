package script

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"strings"
	"sync"
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

// Pool is the interpreters of a server. Each has run the script and has its own global variables. A
// call goes to an interpreter that is free. The interpreters share nothing but the databases.
type Pool struct {
	opts   Options
	states []*state
	free   chan *state
	holds  holds
	files  files
	room   room
	closed chan struct{}

	mu       sync.Mutex // protects stopping
	stopping bool
}

// Load starts the interpreters, one after the other, and runs the script in each. An error of the
// script is logged and is no error of Load, because a server starts with a broken script: what the
// script has defined before the error can be called.
func Load(o Options) *Pool {
	o.setDefaults()
	p := &Pool{opts: o, room: room{limit: o.Room}, free: make(chan *state, o.Workers), closed: make(chan struct{})}
	p.holds.init()
	source, err := readScript(o.Path)
	for thid := range o.Workers {
		s := p.newState(thid)
		p.states = append(p.states, s)
		if !p.run(s, source, err) {
			p.error("could not load a script file: %s", o.Path)
		}
		p.free <- s
	}
	return p
}

// newRoom returns the room of one interpreter. With Options.Memory the room is that limit.
// Otherwise it is half of the common room, but at most the longest text, so that one greedy
// interpreter leaves something for the others.
func (p *Pool) newRoom() *room {
	if p.opts.Memory > 0 {
		return &room{limit: p.opts.Memory}
	}
	return &room{limit: min(p.opts.Room/2, maxText), above: &p.room}
}

// run runs the script in one interpreter and reports whether it has come to its end. err is the
// error of reading the script.
func (p *Pool) run(s *state, source string, err error) bool {
	if err != nil {
		p.error("%s", err)
		return false
	}
	if err := s.run(source); err != nil {
		p.error("[SCRIPT]: (init): %s", err)
		return false
	}
	return true
}

// readScript reads a script up to its first NUL.
func readScript(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the script: %w", err)
	}
	source, _, _ := strings.Cut(string(data), "\x00")
	return source, nil
}

// Call calls the global function name and returns its status.
//
// in yields the input. If the status is Success, out gets the output in the order of the keys; it
// must not change or keep the slices. Updates are added to owed, and the reply must wait for them.
// Call waits for a free interpreter. An error of heed ends the wait; during the call it stops the
// script, which cannot catch it.
func (p *Pool) Call(heed db.Heed, owed *db.Pending, name string, in iter.Seq2[[]byte, []byte], out func(key, value []byte)) (status int) {
	s, status := p.take(heed)
	if s == nil {
		return status
	}
	defer func() { p.free <- s }()
	return s.call(heed, owed, name, in, out)
}

// take returns a free interpreter, or nil and the status of a call that gets none.
func (p *Pool) take(heed db.Heed) (s *state, status int) {
	select {
	case s := <-p.free:
		return s, Success
	default:
	}
	ticker := time.NewTicker(sleepSlice)
	defer ticker.Stop()
	for {
		select {
		case s := <-p.free:
			if heed != nil && heed() != nil { // the client may have gone meanwhile
				p.free <- s
				return nil, Unavailing
			}
			return s, Success
		case <-p.closed:
			return nil, Internal
		case <-ticker.C:
			if heed != nil && heed() != nil {
				return nil, Unavailing
			}
		}
	}
}

// Stop ends all running calls, and refuses new ones. Any goroutine may call it.
func (p *Pool) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return
	}
	p.stopping = true
	close(p.closed)
	for _, s := range p.states {
		s.leash.pull(errStopping)
	}
}

// stopped reports whether Stop has been called.
func (p *Pool) stopped() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}

// Close waits for the running calls, ends the interpreters, and closes the databases that the
// script has opened. Call Stop first if calls may run for ever.
func (p *Pool) Close() error {
	for range p.states {
		s := <-p.free
		s.l.Close()
	}
	p.Stop()
	return p.files.close()
}

func (p *Pool) error(format string, args ...any) {
	p.log(slog.LevelError, fmt.Sprintf(format, args...))
}

func (p *Pool) log(level slog.Level, line string) {
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
