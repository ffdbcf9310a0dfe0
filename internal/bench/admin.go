package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
)

// adminRounds is how often each of the two servers is measured, in turn: neighbours on the machine disturb both alike.
const adminRounds = 15

// admin compares a server that is measured with one that is not.
func (b *bench) admin() error {
	b.table("64 connections, values of 100 bytes, requests/s: medians of interleaved runs, one scrape in each", "operation", "database",
		"without -admin", "with -admin", "ratio", "of the best runs", "least processor time of a request, without and with")
	for _, kind := range kinds() {
		plain, err := start(b.server, append([]string(nil), kind.args...)...)
		if err != nil {
			return err
		}
		defer plain.stop() //nolint:errcheck // a measurement's end
		measured, err := start(b.server, append([]string{"-admin", "127.0.0.1:$PORT1"}, kind.args...)...)
		if err != nil {
			return err
		}
		defer measured.stop() //nolint:errcheck // a measurement's end
		for _, op := range []operation{set, get} {
			if err := b.compareAdmin(plain, measured, kind.name, op); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareAdmin measures one operation, the two servers in turn.
func (b *bench) compareAdmin(plain, measured *process, database string, op operation) error {
	const connections = 64
	var without, with adminRuns
	for round := range adminRounds {
		if err := scrape(measured.further(1)); err != nil {
			return err
		}
		for i := range 2 {
			server, into := plain, &without
			if (i+round)%2 == 1 {
				server, into = measured, &with
			}
			if err := into.add(b, server, op, connections); err != nil {
				return err
			}
		}
	}
	before, after := median(without.rates), median(with.rates)
	b.row(op.name, database, before, after, ratio3(after/before), ratio3(slices.Max(with.rates)/slices.Max(without.rates)),
		fmt.Sprintf("%.2f µs, %.2f µs", slices.Min(without.costs), slices.Min(with.costs)))
	return nil
}

// adminRuns are requests per second, and the processor time of each in microseconds, which neighbours disturb less.
type adminRuns struct{ rates, costs []float64 }

func (r *adminRuns) add(b *bench, p *process, op operation, connections int) error {
	before, err := p.cpu()
	if err != nil {
		return err
	}
	rate, err := b.wrk(p, op, connections)
	if err != nil {
		return err
	}
	after, err := p.cpu()
	if err != nil {
		return err
	}
	r.rates = append(r.rates, rate)
	r.costs = append(r.costs, float64((after-before).Microseconds())/(rate*b.length.Seconds()))
	return nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// ratio3 is a quotient near 1.
type ratio3 float64

// String has three decimals.
func (r ratio3) String() string { return fmt.Sprintf("%.3f ×", float64(r)) }

func scrape(addr string) error {
	response, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("scrape: status %d: %w", response.StatusCode, err)
	}
	return nil
}
