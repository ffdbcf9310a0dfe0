package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	"gotycoon/client"
	"gotycoon/tools/load"
	"gotycoon/tools/show"
)

// benchmark is one run of bench.
type benchmark struct {
	*call
	load    load.Load
	against string
	force   bool
	turns   *int64
	sides   []*side
}

// side is a server that is measured.
type side struct {
	name   string
	target load.Target
	result load.Result
}

// connect looks whether the servers are there and have no records.
func (b *benchmark) connect(ctx context.Context) error {
	addr, _, err := b.server()
	if err != nil {
		return err
	}
	for _, addr := range []string{addr, b.against} {
		if addr == "" {
			continue
		}
		s, err := b.newSide(addr)
		if err != nil {
			return err
		}
		b.sides = append(b.sides, s)
		n, err := b.records(ctx, s)
		if err != nil {
			return &lostServer{addr, err}
		}
		if n > 0 && !b.force {
			return fmt.Errorf("%s has %d records: measure a server of its own, or give -force if its users may wait", addr, n)
		}
	}
	return nil
}

// newSide returns a server that is to be measured.
func (b *benchmark) newSide(addr string) (*side, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, usageError("-against: must be HOST:PORT")
	}
	secure, err := b.tls.Config(host)
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context) (net.Conn, error) {
		d := net.Dialer{Timeout: max(0, *b.timeout)}
		if secure == nil {
			return d.DialContext(ctx, "tcp", addr)
		}
		return (&tls.Dialer{NetDialer: &d, Config: secure}).DialContext(ctx, "tcp", addr)
	}
	return &side{name: addr, target: load.Target{Load: b.load, Dial: dial}}, nil
}

// records returns how many records the database has that is to be measured.
func (b *benchmark) records(ctx context.Context, s *side) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(max(0, *b.timeout), firstAnswer))
	defer cancel()
	if b.load.Protocol == "memcached" {
		c, err := s.target.Dial(ctx)
		if err != nil {
			return 0, err
		}
		defer c.Close()
		defer context.AfterFunc(ctx, func() { _ = c.Close() })() // ends a read
		n, err := load.MemcachedItems(c)
		return n, cmp.Or(context.Cause(ctx), err)
	}
	c := client.New(s.name, client.Options{Timeout: max(0, *b.timeout), Credentials: b.credentials(), Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return s.target.Dial(ctx)
	}})
	defer c.Close()
	rows, err := c.DB(b.db).Status(ctx)
	return rows.Int("count"), err
}

// prepare stores the records that the load asks for.
func (b *benchmark) prepare(ctx context.Context) error {
	for _, s := range b.sides {
		bar := b.progress("stored in " + s.name)
		err := s.target.Fill(ctx, func(n int) { bar.Done(n, 0) })
		bar.End()
		if err != nil {
			return &lostServer{s.name, err}
		}
	}
	return nil
}

// remove removes the records.
func (b *benchmark) remove(ctx context.Context) error {
	var all error
	for _, s := range b.sides {
		bar := b.progress("removed from " + s.name)
		if err := s.target.Remove(ctx, func(n int) { bar.Done(n, 0) }); err != nil {
			all = errors.Join(all, &lostServer{s.name, err})
		}
		bar.End()
	}
	return all
}

func (b *benchmark) progress(items string) show.Progress {
	return show.NewProgress(io.Discard, b.stdout, b.stderr, show.ProgressOptions{Items: "records " + items, Number: int64(b.load.Keys)})
}
