package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"gotycoon/client"
	"gotycoon/tools/cli"
	"gotycoon/tools/load"
	"gotycoon/tools/show"
)

// bench puts load on a server, and prints how long its requests take; with -against it does so with
// two servers in turns. The records it needs have keys that begin as no others do, and it removes
// them in the end, also after Ctrl-C.
func bench(ctx context.Context, c *call) error {
	b := &benchmark{call: c.withDB().withJSON()}
	if err := b.options(); err != nil {
		return err
	}
	if err := b.connect(ctx); err != nil {
		return err
	}
	measured, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	err := b.prepare(measured)
	if err == nil {
		err = b.measure(measured)
	}
	stop()
	err = errors.Join(err, b.remove(context.WithoutCancel(ctx))) // both: records that stay have a prefix to remove them by
	if err == nil {
		err = b.tell()
	}
	return err
}

// options reads the options.
func (b *benchmark) options() error {
	f, l := b.flags, &b.load
	f.StringVar(&l.Protocol, "protocol", "rest", "`name` of the protocol: "+strings.Join(load.Protocols(), ", ")+" (default rest; for memcached -port is that of -memcache-port)")
	mix := f.String("mix", "set=50,get=50", "operations and their `shares`: any of set, get, increment, setbulk, getbulk (default set=50,get=50)")
	keys := f.Integer("keys", 100_000, "number of different keys (default 100000)")
	f.StringVar(&l.Keyed, "keyed", "uniform", "`which` of the keys are asked for: "+strings.Join(load.Distributions(), ", ")+" (default uniform)")
	size := f.String("size", "100", "`bytes` of a value, or a range such as 10-1k (default 100)")
	bulk := f.Integer("bulk", 100, "records of a bulk (default 100)")
	conns := f.Integer("conns", 16, "number of connections, each with a request at a time (default 16)")
	rate := 0.0
	f.Number("rate", func(n float64) { rate = n }, "requests per second, whose waits count from when they are due (default: as many as the server can do)")
	length := f.Seconds("time", 10*time.Second, "measure for so many seconds (default 10)")
	f.StringVar(&b.against, "against", "", "measure the server at `HOST:PORT` too, in turns, and compare")
	b.turns = f.Integer("turns", 4, "with -against: number of turns that each server has (default 4)")
	f.BoolVar(&b.force, "force", false, "also in a database with records; the load may slow their users down")
	if err := b.parse(0, 0); err != nil {
		return err
	}
	var err error
	if l.Mix, err = load.ParseMix(*mix); err != nil {
		return usageError("-mix: " + err.Error())
	}
	if l.Least, l.Most, err = parseSizes(*size); err != nil {
		return err
	}
	switch {
	case *keys < 1 || *keys > 1e9:
		return usageError("-keys: must be 1 to 1000000000")
	case *b.turns < 1:
		return usageError("-turns: must be at least 1")
	case b.flags.Changed("turns") && b.against == "":
		return usageError("-turns: is for -against")
	}
	l.DB, l.Keys, l.Bulk, l.Conns, l.Rate, l.Length = b.db, uint64(*keys), int(*bulk), int(*conns), rate, *length
	l.Prefix = "bench-" + rand.Text()[:10] + ":"
	if b.against != "" {
		if _, _, err := net.SplitHostPort(b.against); err != nil {
			return usageError("-against: must be HOST:PORT")
		}
		l.Length /= time.Duration(*b.turns)
	}
	if l.Header, err = authorizationLine(b.credentials()); err != nil {
		return err
	}
	if err := l.Check(); err != nil {
		return usageError(err.Error())
	}
	return nil
}

// parseSizes reads a size, or two with a dash between them.
func parseSizes(text string) (least, most int, err error) {
	var sizes [2]int64
	first, second, isRange := strings.Cut(text, "-")
	if !isRange {
		second = first
	}
	for i, part := range []string{first, second} {
		if err := cli.Int(&sizes[i]).Set(part); err != nil || sizes[i] < 0 || sizes[i] > 1<<30 {
			return 0, 0, usageError("-size: must be a number of bytes, or two with a dash between them")
		}
	}
	return int(sizes[0]), int(sizes[1]), nil
}

// authorizationLine returns the line of a header that shows credentials; empty without any.
func authorizationLine(w client.Credentials) (string, error) {
	r := http.Request{Header: http.Header{}}
	switch {
	case w.Token != "":
		r.Header.Set("Authorization", "Bearer "+w.Token)
	case w.User != "":
		r.SetBasicAuth(w.User, w.Password)
	default:
		return "", nil
	}
	value := r.Header.Get("Authorization")
	if strings.ContainsAny(value, "\r\n") {
		return "", errors.New("a token has no control characters")
	}
	return "Authorization: " + value + "\r\n", nil
}

// measure puts the load on the servers: on one for the whole time, or on both in turns, so that
// what else the machines do hits both. The server that begins changes from round to round.
func (b *benchmark) measure(ctx context.Context) error {
	rounds := 1
	if len(b.sides) > 1 {
		rounds = int(*b.turns)
	}
	for round := range rounds {
		for turn := range b.sides {
			if ctx.Err() != nil {
				return nil // Ctrl-C: what was measured until now is told
			}
			s := b.sides[(round+turn)%len(b.sides)]
			if err := b.takeTurn(ctx, s); err != nil {
				return &lostServer{s.name, err}
			}
		}
	}
	return nil
}

// takeTurn measures a server once, and shows how far it is if a person watches.
func (b *benchmark) takeTurn(ctx context.Context, s *side) error {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		b.follow(s, stop)
	}()
	err := s.target.Run(ctx, &s.result)
	close(stop)
	<-ended
	return err
}

// follow shows every second how long a turn has lasted.
func (b *benchmark) follow(s *side, stop chan struct{}) {
	if !show.IsTerminal(b.stderr) {
		return
	}
	tick, begin := time.NewTicker(time.Second), time.Now()
	defer tick.Stop()
	for {
		select {
		case <-stop:
			fmt.Fprintf(b.stderr, "\r%s", eraseLine)
			return
		case <-tick.C:
			fmt.Fprintf(b.stderr, "\r%s: %v of %v%s", s.name, time.Since(begin).Round(time.Second), b.load.Length, eraseLine)
		}
	}
}
