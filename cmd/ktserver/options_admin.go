package main

import (
	"errors"
	"time"

	"gotycoon/tools/cli"
)

// defineAdmin lists the options of the admin listener and of what is noted about requests.
func (o *options) defineAdmin() {
	f, a := o.flags, &o.Admin
	f.StringVar(&a.Addr, "admin", "", "serve metrics, probes and profiles by HTTP on this `address`, HOST:PORT")
	f.Var(cli.Duration(&a.ReadyLag), "ready-lag", "report as not ready when so many seconds behind the master, 0: never (default 0)")
	f.BoolVar(&a.ConsoleReadOnly, "console-read-only", false, "let nobody change anything with the console of the admin listener")
	f.Var(span{&a.Slow}, "slow", "log requests that take longer than this `time`: seconds, or with a unit as in 10ms")
	f.Var(integer(&a.Sample), "sample", "with -li: log one of so many requests instead of each")
}

var errSpan = errors.New("must be a number of seconds, or a time with a unit: 0.01, 10ms, 2s")

// span is the value of an option with a length of time: a number of seconds, or with units as in 1m30s.
type span struct{ p *time.Duration }

// Set reads the time.
func (s span) Set(text string) error {
	if d, err := time.ParseDuration(text); err == nil {
		*s.p = d
		return nil
	}
	if cli.Duration(s.p).Set(text) != nil {
		return errSpan
	}
	return nil
}

// String is empty: there is no default.
func (span) String() string { return "" }

// Type stands for the value in the help text.
func (span) Type() string { return "time" }
