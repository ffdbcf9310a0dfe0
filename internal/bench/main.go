// Command bench measures a built ktserver beside redis-server in one run, and prints Markdown
// tables. It starts and ends its own servers on loopback. wrk, redis-server and redis-benchmark
// must be installed.
//
//	go run ./internal/bench -server bin/ktserver [-time 5s] [-only http,one,bulk,…]
//
// -only names the measurements: http, one, bulk, oas, coconut, lock, tls, admin, replication.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	server := flag.String("server", "bin/ktserver", "ktserver binary")
	length := flag.Duration("time", 5*time.Second, "length of one measurement")
	only := flag.String("only", "http,one,bulk,oas,coconut,lock,tls", "measurements to take")
	flag.Parse()
	b := &bench{server: *server, length: *length, out: os.Stdout}
	if err := b.run(strings.Split(*only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// bench takes the measurements and prints them.
type bench struct {
	server string
	length time.Duration
	out    *os.File
}

func (b *bench) run(names []string) error {
	for _, m := range []struct {
		name string
		take func() error
	}{
		{"http", b.http},
		{"one", b.oneConnection},
		{"bulk", b.bulk},
		{"oas", b.oas},
		{"coconut", b.coconut},
		{"lock", b.lock},
		{"tls", b.tls},
		{"admin", b.admin},
		{"replication", b.replication},
	} {
		if !slices.Contains(names, m.name) {
			continue
		}
		if err := m.take(); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
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
