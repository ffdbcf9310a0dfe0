package server

import (
	"errors"
	"fmt"
	"time"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/services/sequence"
)

func (p *process) openDatabases() error {
	engine, err := p.engine()
	if err != nil {
		return err
	}
	opts := db.Options{
		LogDir:         p.cfg.UpdateLog,
		LogLimit:       p.cfg.UpdateLogLimit,
		SID:            uint16(max(p.cfg.ServerID, 0)),
		SyncInterval:   p.cfg.SyncInterval,
		SyncEach:       p.cfg.SyncEach,
		ReadOnly:       p.cfg.ReadOnly,
		TryLock:        p.cfg.TryLock,
		NoRepair:       p.cfg.NoRepair,
		AsIs:           p.cfg.AsIs,
		Services:       p.cfg.Services.database(),
		Vital:          sequence.Vital,
		Engine:         engine,
		CheckpointSize: p.cfg.CheckpointSize,
		Removals:       p.cfg.Replication.Removals,
		Now:            p.cfg.Now,
		Opening:        p.logOpening,
		Logger:         p.log.Logger,
	}
	found, err := p.findSnapshots(opts)
	if err != nil {
		return err
	}
	if p.catalog, err = db.Open(p.cfg.Databases, opts); err != nil {
		return err
	}
	if err := p.restoreMemory(found); err != nil {
		_ = p.catalog.Close() // what went wrong before is said
		return err
	}
	return nil
}

func (p *process) logOpening(what, path string) {
	if what == "log" {
		p.log.system("opening the update log: path=%s sid=%d", path, p.cfg.ServerID)
		return
	}
	p.log.system("opening a database: path=%s", path)
}

// logOpenError writes the established line, and a second one where there is more to know.
func (p *process) logOpenError(err error) {
	if errors.Is(err, errNoEngine) { // has its line
		return
	}
	if open, ok := errors.AsType[*db.OpenError](err); ok {
		p.log.error("could not open a database file: %s: %s", open.Expr, reason(open.Err))
		return
	}
	if log, ok := errors.AsType[*db.LogError](err); ok {
		p.log.error("could not open the update log: %s", log.Dir)
		p.log.error("the update log: %v", log.Err)
		return
	}
	p.log.error("%v", err)
}

// reason is a database error as log lines show it, "NAME: MESSAGE".
func reason(err error) string {
	if e, ok := errors.AsType[*dberr.Error](err); ok {
		return fmt.Sprintf("%s: %s", e.Code, e.Message)
	}
	return err.Error()
}

// durability tells what an acknowledgement means.
func (p *process) durability() string {
	interval := p.cfg.SyncInterval
	if interval <= 0 {
		interval = time.Second
	}
	switch {
	case p.cfg.ReadOnly:
		return "durability: read only, nothing is written"
	case p.cfg.SyncEach:
		return "durability: updates of files and logs are on the disk before they are acknowledged"
	}
	return fmt.Sprintf("durability: acknowledged updates of files and logs survive the end of the process; "+
		"they are on the disk within %.1f s (before the acknowledgement with -oas)", interval.Seconds())
}

// closeDatabases reports whether everything could be closed.
func (p *process) closeDatabases() bool {
	ok := true
	for i := range p.catalog.Len() {
		p.log.system("closing a database: path=%s", p.catalog.DB(i).Expr())
		if err := p.catalog.CloseDB(i); err != nil {
			p.log.error("could not close a database file: %v", err)
			ok = false
		}
	}
	if err := p.catalog.CloseLog(); err != nil {
		p.log.error("could not close the update log: %v", err)
		ok = false
	}
	return ok
}
