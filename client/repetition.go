package client

import "errors"

// repetition says when a call may be sent to another server after it has failed at one. A call that
// was not sent may always be; see "Several servers" in the package comment.
type repetition int

const (
	// once: not after it may have been carried out.
	once repetition = iota
	// bulkOnce: nor after it was refused, because a part of it may have been carried out before.
	bulkOnce
	// update: with Options.RepeatUpdates whenever there was no reply.
	update
	// bulkUpdate is update for several records, as bulkOnce is once.
	bulkUpdate
	// repeated: whenever there was no reply.
	repeated
)

// repetition returns what is true of a call of a procedure. A call with signals is sent once: it
// may wake others, or have waited in vain.
func (db *DB) repetition(proc string) repetition {
	signals := db.signals != Signals{}
	switch proc {
	case "get", "check", "get_bulk", "match_prefix", "match_regex", "match_similar", "status", "report", "void", "echo",
		"ulog_list", "ulog_reach", "replicas", "checksum":
		if !signals {
			return repeated
		}
	case "set", "remove", "touch":
		if !signals {
			return update
		}
	case "set_bulk":
		if !signals {
			return bulkUpdate
		}
		return bulkOnce
	case "remove_bulk", "play_script":
		return bulkOnce
	}
	return once
}

// again reports whether a call that has ended with err may be sent to another server.
func (r repetition) again(err error, o *Options) bool {
	switch {
	case errors.Is(err, ErrNotSent):
		return true
	case errors.Is(err, ErrReadOnly):
		return r != bulkOnce && (r != bulkUpdate || o.RepeatUpdates)
	case errors.Is(err, ErrOutcomeUnknown):
		return r == repeated || (r == update || r == bulkUpdate) && o.RepeatUpdates
	}
	return false
}
