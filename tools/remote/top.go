package remote

import (
	"context"
	"fmt"
	"time"

	"gotycoon/tools/show"
)

// top shows the activity of a server again and again: as a screen on a terminal, otherwise as a
// line.
func top(ctx context.Context, c *call) error {
	every := c.withJSON().withInterval()
	times := c.flags.Integer("n", 0, "look so many times and end (default: until q is pressed)")
	if err := c.parse(0, 0); err != nil {
		return err
	}
	if err := checkInterval(*every, *times); err != nil {
		return err
	}
	if _, err := c.open(ctx); err != nil {
		return err
	}
	view, end := c.topView()
	defer end()
	return c.watch(ctx, *every, *times, view)
}

// withInterval adds the option for the time between two samples.
func (c *call) withInterval() *time.Duration {
	return c.flags.Seconds("iv", time.Second, "look every so many seconds (default 1)")
}

// checkInterval refuses intervals that would put load on the server, and numbers of looks that are
// none.
func checkInterval(every time.Duration, times int64) error {
	if times < 0 {
		return usageError("-n: must not be negative")
	}
	if every < minInterval {
		return usageError(fmt.Sprintf("-iv: must be at least %v", minInterval.Seconds()))
	}
	return nil
}

// topView shows samples.
type topView interface {
	// show prints the activity between two samples.
	show(before, now *sample) error
	// wait waits for d. It returns true as soon as the user wants to end.
	wait(ctx context.Context, d time.Duration) bool
}

// topView chooses the view. end restores the terminal.
func (c *call) topView() (view topView, end func()) {
	if c.json || !show.IsTerminal(c.stdout) {
		return &lineView{call: c}, func() {}
	}
	s := newScreen(c)
	return s, s.close
}

// watch takes and shows samples until ctx ends, the user wants to end, or there were times samples.
func (c *call) watch(ctx context.Context, every time.Duration, times int64, view topView) error {
	before, err := c.sample(ctx)
	for n := int64(0); err == nil && (times <= 0 || n < times); n++ {
		if view.wait(ctx, every) {
			return nil
		}
		var now *sample
		if now, err = c.sample(ctx); err != nil {
			break
		}
		if err := view.show(before, now); err != nil {
			return err
		}
		if err := c.out.Flush(); err != nil {
			return err
		}
		before = now
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// lineView prints a line for each sample.
type lineView struct {
	*call
	lines int
}

// headEvery is the number of lines between two heads with the names of the columns.
const headEvery = 20

func (v *lineView) show(before, now *sample) error {
	rates := ratesBetween(before, now)
	if v.json {
		return v.printJSON(rates.object(now))
	}
	if v.lines%headEvery == 0 {
		fmt.Fprintf(v.out, "%-8s %9s %9s %9s %9s %9s %7s %12s %9s %6s\n", // Flush returns the error
			"time", "set/s", "get/s", "remove/s", "misses/s", "other/s", "conns", "records", "memory", "cpu")
	}
	v.lines++
	_, err := fmt.Fprintf(v.out, "%-8s %9.0f %9.0f %9.0f %9.0f %9.0f %7.0f %12.0f %9s %5.0f%%\n",
		now.at.Format("15:04:05"), rates.set, rates.get, rates.remove, rates.misses(), rates.other(),
		now.number("serv_conn_count"), now.number("db_total_count"), size(now.number("sys_mem_rss")), rates.cpu*percent)
	return err
}

func (v *lineView) wait(ctx context.Context, d time.Duration) bool { return pause(ctx, d) != nil }
