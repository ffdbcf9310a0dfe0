package main

import (
	"fmt"

	"gotycoon/server"
	"gotycoon/tools/cli"
)

// options is the parsed command line.
type options struct {
	server.Config
	flags         *cli.Flags
	help, version bool
	config        string // path of the file, empty for none
	from          string // where the options that are set come from
	databasesFrom string
}

// parse reads the arguments, and what counts less than they do. Its errors end the program.
func parse(args []string) (*options, error) {
	o := newOptions()
	if err := o.flags.Parse(args); err != nil {
		return nil, usageError{err}
	}
	if o.help || o.version {
		return o, nil
	}
	return layers(args, o)
}

// usageError is an error of the user's that the list of options may help with.
type usageError struct{ err error }

// Error adds where to read on.
func (e usageError) Error() string {
	return fmt.Sprintf("%v\nusage: %s [option ...] [database ...]\n"+
		"Options come first; \"--\" ends them. \"%[2]s --help\" explains them.", e.err, server.Program)
}

// check finds values that no server can have.
func (o *options) check() error {
	switch {
	case o.Port < 1:
		return fmt.Errorf("-port: must be at least 1")
	case o.Threads < 1:
		return fmt.Errorf("-th: must be at least 1")
	case o.MasterPort < 1:
		return fmt.Errorf("-mport: must be at least 1")
	case o.databasesFrom == fromDefault && o.flags.Changed("pldb"):
		return fmt.Errorf("-pldb: needs the name of a database")
	case o.flags.NArg() > 0 && o.flags.Arg(0) == "-" && o.flags.ArgsLenAtDash() < 0:
		return fmt.Errorf("the database \"-\" must come after \"--\" or another database")
	}
	return nil
}

// define lists all options. What an option does is explained once, here; what it means inside is explained at the
// fields of server.Config.
func (o *options) define() {
	f := cli.New(server.Program)
	o.flags = f

	f.StringVar(&o.Host, "host", o.Host, "listen on this `address` only, a name or IPv4")
	f.Var(integer(&o.Port), "port", "listen on this port (default 1978)")
	f.Var(cli.Duration(&o.Timeout), "tout", "give up a client that keeps the server waiting for so many seconds within a request (default 30)")
	f.Var(integer(&o.Threads), "th", "number of interpreters of the script, and of threads to report; connections never wait for a thread (default 16)")

	f.StringVar(&o.LogPath, "log", o.LogPath, "append log lines to a `file` instead of standard output")
	o.defineLogs()
	o.level("li", "info", "log what happens to connections and requests, the server's life, and errors")
	o.level("ls", "system", "log the server's life and errors")
	o.level("le", "error", "log errors")
	o.level("lz", "none", "log nothing")

	f.StringVar(&o.UpdateLog, "ulog", o.UpdateLog, "keep an update log in a `directory`; needs -sid")
	f.Var(limit(&o.UpdateLogLimit), "ulim", "begin a new file of the update log at this `size`, 0: never (default 256m)")
	f.Var(cli.Duration(&o.SyncInterval), "uasi", "send the update log to the disk every so many seconds (default 1)")
	f.Var(integer(&o.ServerID), "sid", "ID of this server in update logs, 0 to 65535")

	f.StringVar(&o.MasterHost, "mhost", "", "replicate from the server with this `address`; needs -sid and -rts")
	f.Var(integer(&o.MasterPort), "mport", "its port (default 1978)")
	f.StringVar(&o.RTSPath, "rts", "", "keep the time stamp up to which updates are replicated in a `file`; allows to replicate")
	f.Var(milliseconds(&o.MasterInterval), "riv", "replicate one update in so many milliseconds at most, 0: as many as possible (default 0)")

	f.BoolVar(&o.ReadOnly, "ord", false, "open databases for reading only")
	f.Var(ignored{}, "oat", "accepted: every update is a transaction")
	f.BoolVar(&o.SyncEach, "oas", false, "have an update on the disk before it is acknowledged")
	f.Var(ignored{}, "onl", "accepted: database files are always locked")
	f.BoolVar(&o.TryLock, "otl", false, "fail at once when another process has a file locked")
	f.BoolVar(&o.NoRepair, "onr", false, "fail when a log ends in the middle of an update, instead of dropping it")
	f.BoolVar(&o.AsIs, "as-is", false, "open database files as they are, though acknowledged updates stay out that only their own update logs have")
	f.Var(cli.Int(&o.CheckpointSize), "checkpoint", "move updates into the database file when they take this `size` in memory")

	f.Var(cli.Duration(&o.AutoSync), "asi", "synchronize the databases every so many seconds")
	f.BoolVar(&o.AutoSyncHard, "ash", false, "with -asi: down to the disk")

	f.BoolVar(&o.Daemon, "dmn", false, "run in the background; paths must be absolute")
	f.StringVar(&o.PIDPath, "pid", o.PIDPath, "keep the process ID in a `file` while the server runs")
	f.StringVar(&o.CmdDir, "cmd", o.CmdDir, "`directory` of the commands that clients may have run by synchronize")

	o.defineSnapshots()
	o.defineScript()
	o.definePlugins()
	o.defineServices()
	o.defineAccess()
	o.defineTLS()
	o.defineReplication()
	o.defineAdmin()
	o.defineLimits()
	f.StringVar(&o.config, "config", "", "read options from a TOML `file`, again on HUP; see docs/configuration.md")
	f.BoolVarP(&o.help, "help", "h", false, "explain the options")
	f.BoolVar(&o.version, "version", false, "print the version")
	for _, name := range []string{"oat", "onl"} {
		f.Lookup(name).NoOptDefVal = "true"
	}
	o.describeTable()
}

// level defines one of the options that choose the log lines; the last one given counts.
func (o *options) level(name, level, help string) {
	o.flags.VarPF(alias{o, "log-level", level}, name, "", help).NoOptDefVal = "true"
}

const (
	about         = "a key-value server for the Kyoto Tycoon protocols"
	databasesHelp = "A database is a file (a.kch a.kct a.kcd a.kcf a.kcx), or in memory: \":\" hash, \"*\" cache, \"%\" tree, \"-\" and \"+\"\n" +
		"plain hash and tree. Parameters follow after \"#\": a.kct#ktopts=p. Without any there is one \":\"."
	signalsHelp = "TERM, INT, USR2 stop; USR1 listens again and continues in a new log file; HUP stops, or does as USR1 with -dmn,\n" +
		"or with -config has the file read again, which changes what can be changed while the server runs."
)

func (o *options) usage() string {
	return fmt.Sprintf("%s - %s\n\n"+
		"usage: %[1]s [option ...] [database ...]\n\n%[3]s\n"+
		"Options may have one dash or two. Numbers may end in k, m, g, t, p, e (powers of 1024).\n%[4]s\nSignals: %[5]s\n",
		server.Program, about, o.flags.FlagUsages(), databasesHelp, signalsHelp)
}
