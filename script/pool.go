package script

import (
	"iter"
	"sync"
	"time"

	"gotycoon/db"
)

// Pool is the interpreters of a server. Each has run the script and has its own global variables. A
// call goes to an interpreter that is free. The interpreters share nothing but the databases.
type Pool struct {
	shared
	states []*state
	free   chan *state

	mu       sync.Mutex // protects stopping
	stopping bool
}

// Load starts the interpreters, one after the other, and runs the script in each. An error of the
// script is logged and is no error of Load, because a server starts with a broken script: what the
// script has defined before the error can be called.
func Load(o Options) *Pool {
	o.setDefaults()
	p := &Pool{shared: shared{opts: o, room: room{limit: o.Room}, closed: make(chan struct{})}, free: make(chan *state, o.Workers)}
	p.holds.init()
	source, err := readScript(o.Path)
	for thid := range o.Workers {
		s := p.shared.newState(thid)
		p.states = append(p.states, s)
		if !p.run(s, source, err) {
			p.error("could not load a script file: %s", o.Path)
		}
		p.free <- s
	}
	return p
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
