package util

import (
	"context"
	"fmt"
	"math"
	"time"

	"gotycoon/httpapi/date"
)

// printDate prints a time as seconds since 1970, or in the form that people and protocols use.
func printDate(_ context.Context, c *call) error {
	text := c.flags.String("ds", "", "the `date` to print: seconds, or as W3C or RFC 822 write it (default: now)")
	zone := c.flags.Integer("jl", math.MaxInt64, "time zone of the output in seconds east of Greenwich (default: the local one)")
	w3c := c.flags.Bool("wf", false, "print 2006-01-02T15:04:05Z")
	rfc := c.flags.Bool("rf", false, "print Mon, 02 Jan 2006 15:04:05 GMT")
	if err := c.parse(0, 0); err != nil {
		return err
	}
	seconds := time.Now().Unix()
	if c.flags.Changed("ds") {
		seconds = date.Parse([]byte(*text))
	}
	if !*w3c && !*rfc {
		_, err := fmt.Fprintf(c.out, "%d\n", seconds)
		return err
	}
	if seconds == date.None {
		return fmt.Errorf("%q is no date", *text)
	}
	t := time.Unix(seconds, 0).In(location(*zone))
	format, name := "2006-01-02T15:04:05Z07:00", ""
	if !*w3c {
		format, name = "Mon, 02 Jan 2006 15:04:05 ", zoneName(t)
	}
	_, err := fmt.Fprintf(c.out, "%s%s\n", t.Format(format), name)
	return err
}

// location returns the time zone with this offset in seconds, or the local zone if the offset makes
// no sense.
func location(offset int64) *time.Location {
	const day = 24 * 60 * 60
	if offset <= -day || offset >= day {
		return time.Local
	}
	return time.FixedZone("", int(offset))
}

// zoneName writes a time zone as RFC 822 does.
func zoneName(t time.Time) string {
	if _, offset := t.Zone(); offset == 0 {
		return "GMT"
	}
	return t.Format("-0700")
}
