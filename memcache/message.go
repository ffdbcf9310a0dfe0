package memcache

import "strconv"

// The key of a message is its queue's name and its stamp, and messages come out in the order of
// their keys:
//
//	mail 01780000000000 0042
//	NAME MILLISECONDS   SEQUENCE
//
// A producer relies on messages coming out in the order in which they were acknowledged, whatever
// happens to the clock. So a new stamp is greater than
//
//   - every stamp that this process has given out;
//   - the time stamp of the newest update in the log. The log's stamps only grow, also across
//     restarts, and they are above those of updates that came by replication;
//   - every message of the same name in the database. Nothing else knows these messages if there is
//     no log, if a snapshot was restored, or if messages were stored over HTTP.
//
// Servers that share a database in an engine go by the engine's clock, have no log, and look each
// time for the newest message, which may be another server's. A key that a taken message had may be
// chosen again all the same; that message then comes back behind the new one (db.Claim).
//
// A queue with a message far ahead of the clock therefore continues from that message's time, until
// the queue is empty and the server has restarted. Other queues are not affected.
type stamp struct {
	milliseconds int64
	sequence     int
}

const (
	sequenceEnd = 10_000
	timeDigits  = 14
	stampLen    = len(" 01780000000000 0042")

	// lastTime is the greatest time of a stamp. A key with a greater time was not made by a server,
	// and is not taken for a stamp: none could follow it.
	lastTime = 99_999_999_999_999 - 1<<32
)

func (s stamp) less(t stamp) bool {
	return s.milliseconds < t.milliseconds || s.milliseconds == t.milliseconds && s.sequence < t.sequence
}

// after returns the first stamp behind s with this sequence number.
func (s stamp) after(sequence int) stamp {
	if sequence <= s.sequence {
		s.milliseconds++
	}
	return stamp{s.milliseconds, sequence}
}

// stampOf reads the stamp behind the name in a key. Anything else than an exact stamp is the zero
// stamp.
func stampOf(text []byte) stamp {
	if len(text) != stampLen || text[0] != ' ' || text[1+timeDigits] != ' ' {
		return stamp{}
	}
	ms, err := strconv.ParseUint(string(text[1:1+timeDigits]), 10, 63)
	sequence, err2 := strconv.ParseUint(string(text[2+timeDigits:]), 10, 31)
	if err != nil || err2 != nil || ms > lastTime {
		return stamp{}
	}
	return stamp{int64(ms), int(sequence)}
}
