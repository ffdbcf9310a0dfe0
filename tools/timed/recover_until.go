package timed

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"gotycoon/tools/cli"
	"gotycoon/ulog"
)

// earliestStamp is the time stamp of the 3rd of March 1973. A smaller number is one of seconds,
// milliseconds or microseconds that somebody takes for a time stamp.
const earliestStamp = 100_000_000_000_000_000

// parseMoment reads a time stamp of the log, or a time in the form of RFC 3339, whose fraction may
// have nine digits: as many as a time stamp has, so that 2026-11-21T10:00:00.123000007Z is the
// eighth one of that millisecond.
func parseMoment(text string) (ulog.Stamp, error) {
	if n, err := strconv.ParseUint(text, 10, 63); err == nil {
		if n < earliestStamp {
			return 0, fmt.Errorf("%s is no time stamp: these have 18 digits or more. For a time write it like 2026-11-21T10:00:00.5Z", text)
		}
		return ulog.Stamp(n), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, fmt.Errorf("%q is neither a time stamp nor a time like 2026-11-21T10:00:00Z or 2026-11-21T12:00:00.25+02:00", text)
	}
	if t.Unix() < earliestStamp/1_000_000_000 || t.Unix() >= math.MaxInt64/1_000_000_000 {
		return 0, fmt.Errorf("%s is not within the times that a log can have", text)
	}
	return ulog.Stamp(t.UnixNano()), nil
}

// parseStart reads the value of -ts: a number, "now", or "-" for the beginning.
func parseStart(text string) (ulog.Stamp, error) {
	switch text {
	case "now":
		return ulog.StampAt(time.Now()), nil
	case "-":
		return 0, nil
	}
	var n int64
	if err := cli.Int(&n).Set(text); err != nil {
		return 0, err
	}
	return ulog.Stamp(max(n, 0)), nil
}

// moment shows a time stamp and the time that it stands for.
func moment(s ulog.Stamp) string {
	return fmt.Sprintf("%d (%s)", s, s.Time().UTC().Format("2006-01-02T15:04:05.000Z"))
}
