package main

import (
	"log/slog"
	"math"
	"time"

	"gotycoon/tools/cli"
)

// integer is the value of an option with a number of ordinary size.
func integer(p *int) cli.Number { return func(n float64) { *p = int(n) } }

// milliseconds is the value of an option with a short length of time.
func milliseconds(p *time.Duration) cli.Number {
	const longest = 1 << 62
	return func(n float64) {
		*p = time.Duration(math.Round(max(-longest, min(longest, n*float64(time.Millisecond)))))
	}
}

// limit is the value of an option with a size of which 0 means unlimited, which in server.Config is below 0.
func limit(p *int64) cli.Number {
	return func(n float64) {
		*p = int64(n)
		if n <= 0 {
			*p = math.MinInt64
		}
	}
}

// choice is an option without an argument that sets a variable to one of several values.
type choice struct {
	p     *slog.Level
	value slog.Level
}

// Set implements pflag.Value.
func (c choice) Set(string) error { *c.p = c.value; return nil }

// String implements pflag.Value.
func (choice) String() string { return "" }

// Type implements pflag.Value: the help text shows no argument.
func (choice) Type() string { return "bool" }

// ignored is an option without an argument whose effect the server has anyway.
type ignored struct{}

// Set implements pflag.Value.
func (ignored) Set(string) error { return nil }

// String implements pflag.Value.
func (ignored) String() string { return "" }

// Type implements pflag.Value: the help text shows no argument.
func (ignored) Type() string { return "bool" }
