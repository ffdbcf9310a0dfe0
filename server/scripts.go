package server

import (
	"time"

	"gotycoon/binproto"
	"gotycoon/httpapi"
	"gotycoon/script"
)

// ScriptConfig is the server's script.
type ScriptConfig struct {
	Path   string        // file in Lua whose functions clients may call (-scr); empty: none
	Time   time.Duration // a call that runs longer is ended (-scrtime); 0: never
	Memory int64         // a call is ended whose interpreter holds on to more bytes (-scrmem); 0: never
}

// scripts is the interpreters of the script, nil where there is none, and what they have told the server.
type scripts struct {
	pool *script.Pool
	exit chan int // status given to os.exit
	code int      // the one that the server ends with
}

// loadScript starts the interpreters. A script with an error does not keep the server from starting.
func (p *process) loadScript() {
	if p.cfg.Script.Path == "" {
		return
	}
	p.log.system("loading a script file: path=%s", p.cfg.Script.Path)
	p.scripts.exit = make(chan int, 1)
	p.startScript()
}

func (p *process) startScript() {
	p.scripts.pool = script.Load(script.Options{
		Path:    p.cfg.Script.Path,
		Catalog: p.catalog.View(),
		Workers: min(p.cfg.Threads, MaxThreads),
		Time:    p.cfg.Script.Time,
		Memory:  p.cfg.Script.Memory,
		Room:    p.cfg.Limits.scripts(),
		Logger:  p.log.Logger,
		Exit:    p.exitByScript,
	})
}

// exitByScript is called by the script's os.exit.
func (p *process) exitByScript(status int) {
	select {
	case p.scripts.exit <- status:
	default: // the server is about to end already
	}
}

// reloadScript starts new interpreters with the script as it is now. No call is running.
func (p *process) reloadScript() {
	if p.scripts.pool == nil {
		return
	}
	p.log.system("reloading a script file: path=%s", p.cfg.Script.Path)
	p.endScript()
	p.startScript()
}

// stopCalls ends calls that are still running, so that the server can stop.
func (p *process) stopCalls() {
	if p.scripts.pool != nil {
		p.scripts.pool.Stop()
	}
}

func (p *process) endScript() {
	if err := p.scripts.pool.Close(); err != nil {
		p.log.error("closing a database of the script: %v", err)
	}
}

// closeScript ends the interpreters, and the transactions that calls have left open: a master's updates may wait for them.
func (p *process) closeScript() {
	if p.scripts.pool == nil {
		return
	}
	p.scripts.pool.Stop()
	p.endScript()
	for i := range p.catalog.Len() {
		if t := p.catalog.DB(i).Transaction(); t != nil {
			if err := t.Abort(); err != nil {
				p.log.error("aborting a transaction: %v", err)
			}
		}
	}
}

// procedures returns what the protocols call the script with, nil when there is none.
func (p *process) procedures() httpapi.Scripts {
	if p.scripts.pool == nil {
		return nil // not an interface around nil
	}
	return p.scripts.pool
}

func (p *process) binaryProcedures() binproto.Scripts {
	if p.scripts.pool == nil {
		return nil
	}
	return p.scripts.pool
}
