package remote

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"gotycoon/tools/load"
	"gotycoon/tools/show"
)

// quantiles are the columns of waits.
var quantiles = []struct {
	name  string
	share float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}}

// tell prints the result: a table, or an object for each operation of each server.
func (b *benchmark) tell() error {
	if b.json {
		return b.tellJSON()
	}
	fmt.Fprintln(b.out, b.describe()) // Flush returns the error
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "operation\tserver\trequests\tper second\t")
	for _, q := range quantiles {
		fmt.Fprintf(w, "%s ms\t", q.name)
	}
	fmt.Fprintln(w)
	for _, name := range b.rows() {
		for _, s := range b.sides {
			t := b.tally(s, name)
			fmt.Fprintf(w, "%s\t%s\t%d\t%.0f\t", name, s.name, t.Waits.Total(), s.result.PerSecond(t))
			for _, q := range quantiles {
				fmt.Fprintf(w, "%s\t", milliseconds(t.Waits.Quantile(q.share)))
			}
			fmt.Fprintln(w)
		}
		if len(b.sides) == 2 {
			fmt.Fprintf(w, "%s\t%s\t\t%.2f\t", name, "ratio", b.ratioOfRates(name))
			for _, q := range quantiles {
				fmt.Fprintf(w, "%.2f\t", b.ratioOfWaits(name, q.share))
			}
			fmt.Fprintln(w)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	b.tellTrouble()
	return nil
}

// allRow is the name of the row with all operations.
const allRow = "all"

// rows returns the names of the rows: of each operation, and of all if there are several.
func (b *benchmark) rows() (names []string) {
	for _, s := range b.load.Mix {
		names = append(names, s.Operation.String())
	}
	if len(names) > 1 {
		names = append(names, allRow)
	}
	return names
}

// tally returns the figures of a row.
func (b *benchmark) tally(s *side, name string) *load.Tally {
	for _, share := range b.load.Mix {
		if share.Operation.String() == name {
			return s.result.Tally(share.Operation)
		}
	}
	return s.result.All()
}

// ratioOfRates compares the second server with the first.
func (b *benchmark) ratioOfRates(name string) float64 {
	one, other := b.sides[0], b.sides[1]
	return quotient(other.result.PerSecond(b.tally(other, name)), one.result.PerSecond(b.tally(one, name)))
}

func (b *benchmark) ratioOfWaits(name string, share float64) float64 {
	return quotient(float64(b.tally(b.sides[1], name).Waits.Quantile(share)), float64(b.tally(b.sides[0], name).Waits.Quantile(share)))
}

// quotient is 0 where there is nothing to compare with.
func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// describe says what was measured.
func (b *benchmark) describe() string {
	l := &b.load
	var mix []string
	for _, s := range l.Mix {
		mix = append(mix, fmt.Sprintf("%v=%g", s.Operation, s.Weight))
	}
	sizes := fmt.Sprint(l.Least)
	if l.Most > l.Least {
		sizes += fmt.Sprintf(" to %d", l.Most)
	}
	text := fmt.Sprintf("%s, %d connections, %d keys (%s), values of %s bytes, %s", l.Protocol, l.Conns, l.Keys, l.Keyed, sizes, strings.Join(mix, ","))
	if l.Rate > 0 {
		text += fmt.Sprintf(", %g requests/s, waits from when they were due", l.Rate)
	}
	return text
}

// tellTrouble prints what makes the figures doubtful.
func (b *benchmark) tellTrouble() {
	for _, s := range b.sides {
		all := s.result.All()
		if all.Refused > 0 {
			fmt.Fprintf(b.out, "%s: %d requests were refused: %v\n", s.name, all.Refused, all.Why)
		}
		if all.Missing > 0 {
			fmt.Fprintf(b.out, "%s: %d requests found no record\n", s.name, all.Missing)
		}
		if late := s.result.Late.Quantile(0.99); s.result.Late.Total() > 0 && late > time.Millisecond {
			fmt.Fprintf(b.out, "%s: this machine has sent requests late: p99 %s ms\n", s.name, milliseconds(late))
		}
	}
}

// tellJSON prints an object for each row of each server.
func (b *benchmark) tellJSON() error {
	for _, name := range b.rows() {
		for _, s := range b.sides {
			t := b.tally(s, name)
			o := show.Object{"server": s.name, "operation": name, "requests": t.Waits.Total(), "per_second": s.result.PerSecond(t),
				"missing": t.Missing, "refused": t.Refused, "seconds": s.result.Wall.Seconds(), "late_p99_ms": inMilliseconds(s.result.Late.Quantile(0.99))}
			for _, q := range quantiles {
				o[q.name+"_ms"] = inMilliseconds(t.Waits.Quantile(q.share))
			}
			if err := b.printJSON(o); err != nil {
				return err
			}
		}
	}
	return nil
}

func inMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// milliseconds formats a wait to three digits or the microsecond.
func milliseconds(d time.Duration) string {
	ms := inMilliseconds(d)
	decimals := 3 - int(math.Floor(math.Log10(max(ms, 1)))) - 1
	if ms < 1 {
		decimals = 3
	}
	return fmt.Sprintf("%.*f", max(0, decimals), ms)
}
