package server

import (
	"time"

	"gotycoon/binproto"
	"gotycoon/db"
	"gotycoon/httpapi"
	"gotycoon/script"
)

// ScriptConfig is the server's script.
type ScriptConfig struct {
	Path   string        // file in Lua whose functions clients may call (-scr); empty: none
	Time   time.Duration // a call that runs longer is ended (-scrtime); 0: never
	Memory int64         // a call whose interpreter keeps more bytes is ended (-scrmem); 0: never
}

// scripts is the interpreters of the script, and the exit code that the script has asked for.
type scripts struct {
	scriptOptions
	pool *script.Pool // nil without a script
	exit chan int     // status given to os.exit
}

// scriptOptions are what the interpreters need.
type scriptOptions struct {
	ScriptConfig
	Catalog *db.Catalog
	Workers int   // interpreters
	Room    int64 // bytes that the texts of scripts may take together where Memory is 0
	Log     logger
}

// loadScript starts the interpreters. A script with an error does not keep the server from
// starting.
func loadScript(o scriptOptions) *scripts {
	s := &scripts{scriptOptions: o, exit: make(chan int, 1)}
	if o.Path != "" {
		o.Log.system("loading a script file: path=%s", o.Path)
		s.start()
	}
	return s
}

func (s *scripts) start() {
	s.pool = script.Load(script.Options{
		Path:    s.Path,
		Catalog: s.Catalog.View,
		Workers: s.Workers,
		Time:    s.Time,
		Memory:  s.Memory,
		Room:    s.Room,
		Logger:  s.Log.Logger,
		Exit:    s.exitWith,
	})
}

// exitWith is called by the script's os.exit.
func (s *scripts) exitWith(status int) {
	select {
	case s.exit <- status:
	default: // the server is about to end already
	}
}

// reload starts new interpreters with the script as it is now. No call may be in execution.
func (s *scripts) reload() {
	if s.pool == nil {
		return
	}
	s.Log.system("reloading a script file: path=%s", s.Path)
	s.end()
	s.start()
}

// stopCalls ends calls in execution, so that the server can stop.
func (s *scripts) stopCalls() {
	if s.pool != nil {
		s.pool.Stop()
	}
}

func (s *scripts) end() {
	if err := s.pool.Close(); err != nil {
		s.Log.error("closing a database of the script: %v", err)
	}
}

// close ends the interpreters, and aborts the transactions that calls have left open: updates of a
// master may wait for them.
func (s *scripts) close() {
	if s.pool == nil {
		return
	}
	s.pool.Stop()
	s.end()
	for i := range s.Catalog.Len() {
		if t := s.Catalog.DB(i).Transaction(); t != nil {
			if err := t.Abort(); err != nil {
				s.Log.error("aborting a transaction: %v", err)
			}
		}
	}
}

// http returns what HTTP calls the script with, nil where there is none.
func (s *scripts) http() httpapi.Scripts {
	if s.pool == nil {
		return nil // not an interface around nil
	}
	return s.pool
}

// binary returns what the binary protocol calls the script with, nil where there is none.
func (s *scripts) binary() binproto.Scripts {
	if s.pool == nil {
		return nil
	}
	return s.pool
}
