package remote

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gotycoon/tools/show"
)

// stats prints the figures of a server, or with -watch how fast they change. The arguments choose
// figures by the beginnings of their names.
func stats(ctx context.Context, c *call) error {
	v := &statsView{lineView: lineView{call: c}}
	every := c.withJSON().withInterval()
	watch := c.flags.Bool("watch", false, "print what has changed, and by how much per second, again and again")
	times := c.flags.Integer("n", 0, "with -watch: look so many times and end (default: until Ctrl-C)")
	c.flags.BoolVar(&v.all, "all", false, "with -watch: also what has not changed")
	if err := c.parse(0, -1); err != nil {
		return err
	}
	for _, name := range []string{"n", "iv", "all"} {
		if c.flags.Changed(name) && !*watch {
			return usageError("-" + name + ": is for -watch")
		}
	}
	if err := checkInterval(*every, *times); err != nil {
		return err
	}
	if _, err := c.open(ctx); err != nil {
		return err
	}
	now, err := c.sample(ctx)
	if err != nil {
		return err
	}
	for _, prefix := range c.args {
		if len(v.figures(now, prefix)) == 0 {
			return fmt.Errorf("%s has no figure whose name begins with %q: %s stats prints all", c.peerName(), prefix, program)
		}
	}
	if *watch {
		return c.watch(ctx, *every, *times, v)
	}
	return v.showOnce(now)
}

// statsView prints the numbers of reports, one line for each.
type statsView struct {
	lineView
	all bool // with what has not changed
}

// showOnce prints the present figures.
func (v *statsView) showOnce(now *sample) error {
	figures := v.figures(now, v.args...)
	if v.json {
		return v.printJSON(figures)
	}
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		fmt.Fprintf(v.out, "%s: %s\n", name, number(figures[name])) // Flush returns the error
	}
	return nil
}

// show prints what has changed between two samples: a head with the time, then a line for each
// figure with its value and its change per second.
func (v *statsView) show(before, now *sample) error {
	was, is := v.figures(before, v.args...), v.figures(now, v.args...)
	seconds := max(now.at.Sub(before.at).Seconds(), minInterval.Seconds())
	changes := show.Object{"time": now.at.Unix()}
	if !v.json {
		fmt.Fprintf(v.out, "%-34s %20s %14s\n", now.at.Format("15:04:05"), "value", "per second") // Flush returns the error
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		change := (is[name] - was[name]) / seconds
		switch {
		case change == 0 && !v.all:
		case v.json:
			changes[name] = show.Object{"value": is[name], "per_second": change}
		default:
			fmt.Fprintf(v.out, "%-34s %20s %+14.1f\n", name, number(is[name]), change)
		}
	}
	if v.json {
		return v.printJSON(changes)
	}
	return nil
}

// figures returns those rows of a report that are numbers, and whose names begin with one of the
// prefixes, if there are any. Each database has two: db_N_count and db_N_size. The clocks are left
// out, because they always change.
func (v *statsView) figures(s *sample, prefixes ...string) map[string]float64 {
	found := map[string]float64{}
	for name, text := range s.rows {
		if n, err := strconv.ParseFloat(string(text), 64); err == nil && !slices.Contains(clocks, name) {
			found[name] = n
		}
	}
	for i, d := range s.databases() {
		found[fmt.Sprintf("db_%d_count", i)], found[fmt.Sprintf("db_%d_size", i)] = d.count, d.size
	}
	maps.DeleteFunc(found, func(name string, _ float64) bool {
		return len(prefixes) > 0 && !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	})
	return found
}

// clocks are rows that only tell the time, and the process.
var clocks = []string{"serv_current_time", "serv_running_term", "serv_proc_id"}

// number formats a figure without an exponent.
func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
