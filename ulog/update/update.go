// Package update holds the types that an update consists of: a leaf, so that stores and logs can
// speak of the same updates and neither has to know the other. Package ulog gives these types a
// second name (ulog.Update is update.Update) and has everything that reads and writes them.
package update

import "time"

// Stamp is a position in the log and the time of the change there: UNIX milliseconds × 1,000,000
// plus a counter. The stamps of a log only grow. The counter makes them different: the third update
// of the millisecond 1,700,000,000,000 has the stamp 1,700,000,000,000,000,002.
type Stamp uint64

// PerMilli is how many stamps a millisecond has.
const PerMilli = 1_000_000

// StampAt returns the smallest stamp of a moment.
func StampAt(t time.Time) Stamp { return Stamp(t.UnixMilli()) * PerMilli }

// Time returns the moment of a stamp, to the millisecond.
func (s Stamp) Time() time.Time { return time.UnixMilli(int64(s / PerMilli)) }

// Op says what an update does.
type Op byte

// The operations that are logged. The original reserves others and never writes them.
const (
	OpSet    Op = 0xA1
	OpRemove Op = 0xA2
	OpClear  Op = 0xA5
)

// Update is one change to one database. The fields up to Value are the update's message in the log;
// the fields behind Value only travel with the update through this process.
type Update struct {
	SID  uint16 // the server where the change was made
	DBID uint16 // index of the database on the command line
	Op   Op
	Key  []byte // of OpSet and OpRemove
	// Value of OpSet in stored form: with the 5-byte expiration time in front unless the database
	// is persistent. ulog.ParseMessage puts the operands of an unknown operation here.
	Value []byte
	// Stays says that nobody changes Value before the log has been waited for, so that neither the
	// log nor a store need copy a large one.
	Stays bool
	// Ahead is the Value on the log's disk, where it was written before the update was appended;
	// nil otherwise.
	Ahead *Ahead
	// Origin is where the update was made, unless here. The log keeps it in a record of its own.
	Origin Origin
}

// Origin says where an update was first made, for updates that came from another server. The zero
// value means: here.
type Origin struct {
	Log   uint64 // the beginning of the identity of that server's log, see ulog.LogKey
	Stamp Stamp  // the update's stamp there
}

// Ahead is the value of an update that a log has written before the update's turn. Only package
// ulog makes one. It goes into Update.Ahead, or is discarded.
type Ahead struct {
	File   any    // where the value is, for the log alone
	Remove func() // removes the value, unless its update has been appended
}

// Discard removes the value from the disk, unless its update has been appended. A nil Ahead has
// nothing to remove.
func (a *Ahead) Discard() {
	if a != nil {
		a.Remove()
	}
}
