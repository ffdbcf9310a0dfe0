//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// The regression guard takes a fixed list of short workloads and compares the processor time of an
// operation with a recorded table. A rate depends on what else the machine does; processor time
// does so much less, and a calibration, run between the workloads, takes away a part of the rest: a
// processor of another kind or at another clock rate, a neighbour that uses the caches and the
// memory. The table is in units of the calibration.
//
// What the calibration cannot take away: a server on a busy machine finds fewer requests ready each
// time that it looks, and its caches cold, so an operation costs more than the same one on a quiet
// machine. The median of several rounds, and as many rounds again for what looks slower, are
// against that; CONTRIBUTING.md says how far it works.

// checkOptions are the options of the regression guard.
type checkOptions struct {
	recorded  string
	record    bool
	rounds    int
	tolerance float64
}

func (o *checkOptions) register(f *flag.FlagSet) {
	f.StringVar(&o.recorded, "recorded", "internal/bench/recorded.tsv", "check: `file` of the recorded table")
	f.BoolVar(&o.record, "record", false, "check: write the table instead of comparing with it")
	f.IntVar(&o.rounds, "rounds", 5, "check: `number` of rounds, of which the median counts")
	f.Float64Var(&o.tolerance, "tolerance", 15, "check: fail when a workload takes so many `percent` more than recorded")
}

// check compares with the recorded table, or records it.
func (b *bench) check() error {
	o := &b.guard
	var recorded []figure
	if !o.record {
		var err error
		if recorded, err = readFigures(o.recorded); err != nil {
			return err
		}
	}
	c, err := newChecker(b.server)
	if err != nil {
		return err
	}
	defer c.close()
	fmt.Fprintf(os.Stderr, "check: %d rounds of %d workloads, about %v\n", o.rounds, len(c.workloads), time.Duration(o.rounds)*15*time.Second)
	if err := c.rounds(o.rounds, nil); err != nil {
		return err
	}
	c.warn()
	if o.record {
		return writeFigures(o.recorded, machine(), c.figures())
	}
	verdicts := compare(recorded, c.figures(), o.tolerance)
	if slow := namesOf(verdicts, slower); len(slow) > 0 {
		fmt.Fprintf(os.Stderr, "check: a second look at %s\n", strings.Join(slow, ", "))
		if err := c.rounds(o.rounds, slow); err != nil {
			return err
		}
		verdicts = compare(recorded, c.figures(), o.tolerance)
	}
	b.table("Processor time of an operation beside the recorded one", "workload", "µs", "units", "recorded", "ratio", "")
	for _, v := range verdicts {
		b.row(v.name, fmt.Sprintf("%.2f", v.now.micros), fmt.Sprintf("%.3g", v.now.units), fmt.Sprintf("%.3g", v.recorded.units), ratio(v.ratio()), v.outcome)
	}
	return judge(verdicts, o.tolerance)
}

// judge returns an error that names what is slower than recorded, and what cannot be compared.
func judge(verdicts []verdict, tolerance float64) error {
	var errs []error
	if slow := namesOf(verdicts, slower); len(slow) > 0 {
		errs = append(errs, fmt.Errorf("more than %g %% slower than recorded: %s", tolerance, strings.Join(slow, ", ")))
	}
	if unknown := append(namesOf(verdicts, unrecorded), namesOf(verdicts, gone)...); len(unknown) > 0 {
		errs = append(errs, fmt.Errorf("not in both the table and the program, record anew with -record: %s", strings.Join(unknown, ", ")))
	}
	return errors.Join(errs...)
}

func namesOf(verdicts []verdict, o outcome) (names []string) {
	for _, v := range verdicts {
		if v.outcome == o {
			names = append(names, v.name)
		}
	}
	return names
}

// checker takes the workloads in rounds.
type checker struct {
	server      string
	dir         string // of the test binaries
	calibration *calibration
	workloads   []workload
	samples     map[string][]figure
}

func newChecker(server string) (*checker, error) {
	dir, err := os.MkdirTemp("", "bench-check-")
	if err != nil {
		return nil, err
	}
	c := &checker{server: server, dir: dir, workloads: workloads(), samples: map[string][]figure{}}
	if c.calibration, err = newCalibration(wholeEffort); err != nil {
		return nil, errors.Join(err, c.close())
	}
	for _, w := range c.workloads {
		if w.tests == "" {
			continue
		}
		if err := buildTests(w, dir); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

func (c *checker) close() error {
	if c.calibration != nil {
		c.calibration.close()
	}
	return os.RemoveAll(c.dir)
}

// rounds takes all workloads n times, or those that only names. Each round has servers of its own,
// because some processes are faster than others for all their life.
//
// The unit of a round is the median of its calibrations, of which there is one after each workload:
// single calibrations are up to a tenth apart on a busy machine.
func (c *checker) rounds(n int, only []string) error {
	for range n {
		var r round
		for _, kind := range checkServers() {
			if err := c.kind(kind, only, &r); err != nil {
				return err
			}
		}
		const fewest = 7 // calibrations
		for len(r.units) < fewest {
			if err := r.calibrate(c.calibration); err != nil {
				return err
			}
		}
		unit := median(r.units)
		for _, s := range r.samples {
			s.units = s.micros / unit
			c.samples[s.name] = append(c.samples[s.name], s)
		}
	}
	return nil
}

// round is what has been measured in a round: figures that have no units yet, and the calibrations
// in microseconds.
type round struct {
	samples []figure
	units   []float64
}

func (r *round) calibrate(c *calibration) error {
	unit, err := c.unit()
	r.units = append(r.units, unit.Seconds()*1e6)
	return err
}

// kind takes the workloads of one kind of server, or those without a server.
func (c *checker) kind(kind checkServer, only []string, r *round) error {
	var ours []workload
	for _, w := range c.workloads {
		if w.server == kind.name && (only == nil || slices.Contains(only, w.name)) {
			ours = append(ours, w)
		}
	}
	if len(ours) == 0 {
		return nil
	}
	var p *process
	if kind.name != "" {
		var err error
		if p, err = kind.start(c.server); err != nil {
			return err
		}
		defer p.stop() // a measurement's end
	}
	for _, w := range ours {
		each, err := w.run(p, c.dir)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		r.samples = append(r.samples, figure{name: w.name, micros: each.Seconds() * 1e6})
		if err := r.calibrate(c.calibration); err != nil {
			return err
		}
	}
	return nil
}

// warn tells when others use the machine so much that the figures are doubtful.
func (c *checker) warn() {
	const enough = 0.9
	if share := c.calibration.share(); share < enough {
		fmt.Fprintf(os.Stderr, "check: the machine is busy: a thread had only %.0f %% of a processor. Figures may be a fifth off\n", share*100)
	}
}

// figures returns the median of each workload's samples.
func (c *checker) figures() []figure {
	var all []figure
	for _, w := range c.workloads {
		s := slices.SortedFunc(slices.Values(c.samples[w.name]), func(a, b figure) int {
			if a.units < b.units {
				return -1
			}
			return 1
		})
		all = append(all, s[len(s)/2])
	}
	return all
}
