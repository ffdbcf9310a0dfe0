//go:build linux

package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
)

// adminRounds is the number of runs of each kind of server. The kinds take turns, so that other
// load on the machine disturbs both alike. Each run has a process of its own, because some
// processes are faster than others for all their life.
const adminRounds = 12

// admin compares servers with -admin, which measure their requests, with servers without.
func (b *bench) admin() error {
	b.table("64 connections, values of 100 bytes, requests/s, a scrape in each run with -admin", "operation", "database",
		"without -admin", "with -admin", "ratio of medians", "ratio of best runs", "least processor time of a request, without and with")
	for _, kind := range kinds() {
		runs := map[string]*adminRuns{}
		for round := range 2 * adminRounds {
			if err := b.adminRound((round+round/2)%2 == 1, kind.args, runs); err != nil {
				return err
			}
		}
		for _, op := range []operation{set, get} {
			without, with := runs[op.name+"plain"], runs[op.name+"measured"]
			b.row(op.name, kind.name, median(without.rates), median(with.rates), ratio3(median(with.rates)/median(without.rates)),
				ratio3(slices.Max(with.rates)/slices.Max(without.rates)),
				fmt.Sprintf("%.2f µs, %.2f µs", slices.Min(without.costs), slices.Min(with.costs)))
		}
	}
	return nil
}

// adminRound measures one server.
func (b *bench) adminRound(measured bool, args []string, into map[string]*adminRuns) error {
	name := "plain"
	args = slices.Clone(args)
	if measured {
		name = "measured"
		args = append([]string{"-admin", "127.0.0.1:$PORT1"}, args...)
	}
	p, err := start(b.server, args...)
	if err != nil {
		return err
	}
	defer p.stop() // a measurement's end
	for _, op := range []operation{set, get} {
		if measured {
			if err := scrape(p.further(1)); err != nil {
				return err
			}
		}
		runs := into[op.name+name]
		if runs == nil {
			runs = &adminRuns{}
			into[op.name+name] = runs
		}
		if err := runs.add(b, p, op); err != nil {
			return err
		}
	}
	return nil
}

// adminRuns are the results of the runs of one kind of server: requests per second, and the
// processor time of a request in microseconds. Other load on the machine disturbs the latter less.
type adminRuns struct{ rates, costs []float64 }

func (r *adminRuns) add(b *bench, p *process, op operation) error {
	const connections = 64
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

// ratio3 is a quotient near 1, with three decimals.
type ratio3 float64

// String implements fmt.Stringer.
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
