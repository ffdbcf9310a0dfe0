package main

import (
	"errors"
	"fmt"
	"os"

	"gotycoon/tools/cli"
)

// later is the options whose features this version does not have. They are refused, so that nobody believes that
// their data is replicated or in a snapshot.
type later struct {
	master, timestamps, script string
	masterPort                 int
	rest                       string
}

// features are the refused options and what they belong to.
var features = [...]struct{ option, feature string }{
	{"mhost", "replication"}, {"mport", "replication"}, {"rts", "replication"}, {"riv", "replication"},
	{"bgs", "background snapshots"}, {"bgsi", "background snapshots"}, {"bgsc", "background snapshots"},
	{"scr", "Lua scripts"},
	{"plsv", "plug-ins"}, {"plex", "plug-ins"}, {"pldb", "plug-ins"},
}

func (l *later) define(f *cli.Flags) {
	l.masterPort = 1978
	f.StringVar(&l.master, "mhost", "", "")
	f.Var(integer(&l.masterPort), "mport", "")
	f.StringVar(&l.timestamps, "rts", "", "")
	f.StringVar(&l.script, "scr", "", "")
	for _, row := range features {
		if f.Lookup(row.option) == nil {
			f.StringVar(&l.rest, row.option, "", "")
		}
		f.Lookup(row.option).Hidden = true
	}
}

// check refuses the options, with the original's words where they are wrong anyway.
func (l *later) check(o *options) error {
	switch {
	case l.master != "" && o.ServerID < 0:
		return errors.New("replication requires the server ID")
	case l.master != "" && l.timestamps == "":
		return errors.New("replication requires the replication time stamp file")
	case l.script != "" && !exists(l.script):
		return fmt.Errorf("%s: no such file", l.script)
	}
	for _, row := range features {
		if o.flags.Changed(row.option) {
			return fmt.Errorf("-%s: this version has no %s", row.option, row.feature)
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
