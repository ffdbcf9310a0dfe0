package main

import (
	"fmt"
	"os"

	"gotycoon/tools/cli"
)

// later is the options whose features this version does not have. They are refused, so that nobody believes that
// their data is in a snapshot.
type later struct {
	script, rest string
}

// features are the refused options and what they belong to.
var features = [...]struct{ option, feature string }{
	{"bgs", "background snapshots"}, {"bgsi", "background snapshots"}, {"bgsc", "background snapshots"},
	{"scr", "Lua scripts"},
	{"plsv", "plug-ins"}, {"plex", "plug-ins"}, {"pldb", "plug-ins"},
}

func (l *later) define(f *cli.Flags) {
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
	if l.script != "" && !exists(l.script) {
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
