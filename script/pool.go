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

// Statuses of a call: what a procedure returns, or what is told for it. Every other one means failed, too.
const (
	Success    = 0 // RVSUCCESS
	NoImpl     = 1 // RVENOIMPL, and for a procedure that the script does not have
	Invalid    = 2 // RVEINVALID
	Logic      = 3 // RVELOGIC
	Unavailing = 4 // no constant of the original has it; its server answers as for a time-out
	Internal   = 5 // RVEINTERNAL, and for an error in the script
)

// Options of a Pool.
type Options struct {
	Path    string           // the script (-scr)
	Catalog *db.View         // the server's databases
	Workers int              // interpreters (-th); 0 means 16
	Time    time.Duration    // how long a call may take (-scrtime); 0: for ever
	Memory  int64            // bytes that an interpreter may hold on to (-scrmem); 0: any number
	Room    int64            // without Memory: bytes of large texts and tables that library functions may make, for all interpreters together; 0: any number
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

// Pool is the interpreters of a server. Each has run the script for itself and has its own global variables; a call goes to one
// that is free. They share the databases and nothing else.
type Pool struct {
	opts   Options
	states []*state
	free   chan *state
	holds  holds
	files  files
	room   room
	closed chan struct{}

	mu       sync.Mutex // guards stopping
	stopping bool
}

// Load starts the interpreters, one after the other, each with the script. A script with an error leaves what it has defined
// before; that is in the log, and no error of Load: a server starts with a broken script.
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

// newRoom returns the room of one interpreter: what it may hold on to, or half of what all have together but no more than the longest text, so
// that one that takes all it can get leaves something for the others.
func (p *Pool) newRoom() *room {
	if p.opts.Memory > 0 {
		return &room{limit: p.opts.Memory}
	}
	return &room{limit: min(p.opts.Room/2, maxText), above: &p.room}
}

// run runs the script in one interpreter and reports whether it has come to its end. err is why it could not be read.
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

// Call calls the global function name and returns its status. in is the input; out is given the output, in the order of the keys,
// when the status is Success; it must not change or keep the slices. Updates are added to owed: the reply must wait for them. When no interpreter is free Call
// waits for one. An error of heed ends the waiting, and the call: as an error of the script that nothing in the script can catch.
func (p *Pool) Call(heed db.Heed, owed *db.Pending, name string, in iter.Seq2[[]byte, []byte], out func(key, value []byte)) (status int) {
	s, status := p.take(heed)
	if s == nil {
		return status
	}
	defer func() { p.free <- s }()
	return s.call(heed, owed, name, in, out)
}

// take returns an interpreter that is free, or why there is none.
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
			if heed != nil && heed() != nil { // much may have happened meanwhile
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

// Stop ends the calls that are running, and those to come. Any goroutine may call it.
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

// stopped tells whether Stop has been called.
func (p *Pool) stopped() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}

// Close ends the interpreters, after the calls that are running, and closes the databases that the script has opened. Call Stop first when calls may take for ever.
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

// logLevel returns the level of a kind of line as scripts name it.
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
