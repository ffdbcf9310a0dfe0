package sequence

import (
	"errors"
	"fmt"
	"strconv"

	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/services/internal/webport"
	"gotycoon/services/leader"
)

// The records of the services' database that belong to sequences. They are text, to be read and
// mended with the usual tools.
//
//	key                                      value
//	"sequence" 00 SERVER-NO "/" SID 00 NAME  BOUND
//
// All seconds in the numbers that the server SID has given out are below BOUND; 0: none was given
// out. Only the server SID writes the record (package leader). Older versions wrote bounds without
// "/" SID; each server reads such a bound as its own.
type records struct {
	webport.Records
	serverNo int
	sid      uint16
}

// prefix is a prefix of the keys of all sequences with this server number. Server numbers
// that begin with the same digits share it: 1 finds 12 as well.
func (r *records) prefix() []byte {
	return strconv.AppendInt([]byte(leader.SequencePrefix), int64(r.serverNo), 10)
}

func (r *records) key(server, name string) []byte {
	return append(r.prefix(), server+"\x00"+name...)
}

// server returns this server's part of the keys of sequences.
func (r *records) server() string { return "/" + strconv.Itoa(int(r.sid)) }

// users reports whether this server has used its server number, for a sequence of any name, and
// returns the ID of another server that has used it, "" if there is none.
func (r *records) users() (used bool, other string, err error) {
	servers, err := r.Words(r.prefix(), webport.MaxNames)
	for _, server := range servers {
		switch {
		case server == r.server():
			used = true
		case server != "" && server[0] == '/':
			other = server[1:]
		}
	}
	return used, other, err
}

// bounds returns the bound of this server's sequence, and the greatest bound of other servers with
// the same server number; 0 where there is none.
func (r *records) bounds(name string) (own, others uint64, err error) {
	servers, err := r.Words(r.prefix(), webport.MaxNames)
	if err != nil {
		return 0, 0, err
	}
	for _, server := range servers {
		if server != "" && server[0] != '/' {
			continue // a longer server number that begins with the same digits
		}
		bound, err := r.bound(server, name)
		switch {
		case err != nil:
			return 0, 0, err
		case server == "" || server == r.server():
			own = max(own, bound)
		default:
			others = max(others, bound)
		}
	}
	return own, others, nil
}

func (r *records) bound(server, name string) (uint64, error) {
	value, err := r.Value(r.key(server, name))
	if err != nil || value == nil {
		return 0, err
	}
	bound, err := strconv.ParseUint(string(value), 10, 64-serialBits)
	if err != nil {
		return 0, fmt.Errorf("the record of sequence %q is damaged: %w", name, err)
	}
	return bound, nil
}

// setBound returns when the bound would survive a power cut.
func (r *records) setBound(name string, bound uint64) error {
	var owed db.Pending
	return errors.Join(r.putBound(&owed, name, bound), owed.Wait(), r.SyncLog())
}

func (r *records) putBound(owed *db.Pending, name string, bound uint64) error {
	return r.Set(owed, r.key(r.server(), name), strconv.AppendUint(nil, bound, 10), record.Never)
}
