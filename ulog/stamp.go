package ulog

import (
	"time"

	"gotycoon/ulog/update"
)

// The types of package update under the names that the users of a log know them by.
type (
	Stamp  = update.Stamp  // position in the log, and time of the change there
	Update = update.Update // one change to one database
	Op     = update.Op     // what an update does
	Origin = update.Origin // where an update was first made
	Ahead  = update.Ahead  // a value that WriteAhead has written
)

// The operations that are logged.
const (
	OpSet    = update.OpSet
	OpRemove = update.OpRemove
	OpClear  = update.OpClear
)

const (
	perMilli   = update.PerMilli
	maxStamp   = Stamp(1) << 63 // the year 2262; anything from here on is damage
	startSlack = Stamp(1_000_000_000)
)

// StampAt returns the smallest stamp of a moment.
func StampAt(t time.Time) Stamp { return update.StampAt(t) }
