//go:build linux

// Command bench measures a built ktserver beside redis-server in one run, and prints Markdown
// tables. It starts and ends its own servers on loopback. wrk, redis-server and redis-benchmark
// must be installed.
//
//	go run ./internal/bench -server bin/ktserver [-time 5s] [-only http,one,bulk,…]
//	go run ./internal/bench -server bin/ktserver -only bulkpairs -original /usr/local/bin/ktserver
//	go run ./internal/bench -plot ladder.tsv [-o docs/images]
//	go run ./internal/bench -stalls
//
// -only names the measurements: http, one, bulk, oas, coconut, lock, tls, admin, pairs, latency,
// ladder, check, replication, delay, sync, engine (needs PostgreSQL), bulkpairs (needs a Kyoto
// Tycoon).
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	only := flag.String("only", "http,one,bulk,oas,coconut,lock,tls,pairs,latency,ladder", "measurements to take")
	b := &bench{out: os.Stdout}
	flag.StringVar(&b.server, "server", "bin/ktserver", "ktserver binary")
	flag.StringVar(&b.original, "original", "", "`ktserver` of a Kyoto Tycoon, for bulkpairs")
	flag.DurationVar(&b.length, "time", 5*time.Second, "length of one measurement")
	flag.Float64Var(&b.rate, "rate", 0, "requests/s of latency, `number`; 0: half of what each server can do")
	b.scale.register(flag.CommandLine)
	b.guard.register(flag.CommandLine)
	drawn := flag.String("plot", "", "draw this `file` of the ladder's -tsv instead of measuring")
	pictures := flag.String("o", "docs/images", "`directory` for the pictures of -plot")
	stalls := flag.Bool("stalls", false, "print the longest stall of the machine itself until the input ends, in ms, instead of measuring")
	flag.Parse()
	// Ctrl-C reaches the servers too. Their end is an error of the measurement, which then removes
	// its files: the ladder's are up to 30 GB.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	work := func() error { return b.run(strings.Split(*only, ",")) }
	if *drawn != "" {
		work = func() error { return plot(*drawn, *pictures) }
	}
	if *stalls {
		work = func() error { return printStalls(os.Stdin, os.Stdout) }
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench takes the measurements and prints them.
type bench struct {
	server   string
	original string
	length   time.Duration
	rate     float64 // of latency; 0: half of what a server can do
	out      *os.File
	scale    ladderOptions
	guard    checkOptions
}

func (b *bench) run(names []string) error {
	all := b.measurements()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(m measurement) bool { return m.name == name }) {
			return fmt.Errorf("-only: there is no measurement %q", name)
		}
	}
	for _, m := range all {
		if !slices.Contains(names, m.name) {
			continue
		}
		if err := m.take(); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

type measurement struct {
	name string
	take func() error
}

// measurements are all measurements in the order in which they are taken.
func (b *bench) measurements() []measurement {
	return []measurement{
		{"http", b.http},
		{"one", b.oneConnection},
		{"bulk", b.bulk},
		{"oas", b.oas},
		{"coconut", b.coconut},
		{"lock", b.lock},
		{"tls", b.tls},
		{"admin", b.admin},
		{"replication", b.replication},
		{"delay", b.delay},
		{"sync", b.sync},
		{"pairs", b.pairs},
		{"latency", b.latency},
		{"ladder", b.ladder},
		{"check", b.check},
		{"engine", b.engine},
		{"bulkpairs", b.bulkPairs},
	}
}

// table prints the head of a table.
func (b *bench) table(title string, columns ...string) {
	fmt.Fprintf(b.out, "\n%s\n\n| %s |\n|%s\n", title, strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)))
}

// row prints a row. Numbers get a comma between thousands.
func (b *bench) row(cells ...any) {
	text := make([]string, len(cells))
	for i, c := range cells {
		switch c := c.(type) {
		case float64:
			text[i] = thousands(c)
		default:
			text[i] = fmt.Sprint(c)
		}
	}
	fmt.Fprintf(b.out, "| %s |\n", strings.Join(text, " | "))
}

func thousands(f float64) string {
	s := fmt.Sprintf("%.0f", f)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// ratio is a quotient with two decimals.
type ratio float64

// String implements fmt.Stringer.
func (r ratio) String() string { return fmt.Sprintf("%.2f ×", float64(r)) }
