package ulog

import "time"

// Stamp is a position in the log and the time of the change it names: UNIX milliseconds × 1,000,000 plus a
// counter. Stamps only grow.
type Stamp uint64

const (
	perMilli   = 1_000_000
	maxStamp   = Stamp(1) << 63 // the year 2262; anything from here on is damage
	startSlack = Stamp(1_000_000_000)
)

// StampAt returns the smallest stamp of a moment.
func StampAt(t time.Time) Stamp { return Stamp(t.UnixMilli()) * perMilli }

// Time returns the moment of a stamp, to the millisecond.
func (s Stamp) Time() time.Time { return time.UnixMilli(int64(s / perMilli)) }
