package primary

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"gotycoon/db"
	"gotycoon/ulog"
)

// The records of the services' database as they matter here. What they mean to the services is told in coconut/records.go and
// jesync/fence.go.
//
//	key                              value
//	"primary" 00 SID                     TERM     claim of the server with this ID: only that writes it, and it only grows
//	"primary" 00 SID "/told"             TERM     greater one of that server that others have told it of: it has lost what it made then
//	"sequence" 00 ... "/" SID 00 ...     BOUND    of one server: only that writes it, and it only grows
//	"lock" 00 "fence" 00 SID             BOUND    so is this
//	others                                        of the primary
//
// Numbers are in decimal. Keys of bounds without a SID are of before there was one in them, and are nobody's.
const (
	claimPrefix    = "primary\x00"
	SequencePrefix = "sequence\x00"  // begins the keys of sequences' bounds
	FencePrefix    = "lock\x00fence" // and those of fencing tokens' bounds; 00 SID follows
)

// How far above what is known of another server's numbers, or of those of this one in a life that it has lost, its next ones begin: so much
// may have been given out that nobody has been told of.
const (
	AheadSeconds = 60      // of sequences
	AheadTokens  = 1 << 40 // for fencing
)

// growing begins the keys of records whose values only grow.
var growing = []string{claimPrefix, SequencePrefix, FencePrefix}

// grows tells whether a record is one of those whose values only grow.
func grows(key []byte) bool {
	for _, prefix := range growing {
		if bytes.HasPrefix(key, []byte(prefix)) {
			return true
		}
	}
	return false
}

// ownBound tells whether a record is a bound of the server with an ID, and how far above it that goes on when it has lost its own.
func ownBound(key []byte, sid uint16) (ahead uint64, own bool) {
	id := strconv.Itoa(int(sid))
	if name, ok := bytes.CutPrefix(key, []byte(FencePrefix)); ok {
		return AheadTokens, string(name) == "\x00"+id
	}
	name, ok := bytes.CutPrefix(key, []byte(SequencePrefix))
	if !ok {
		return 0, false
	}
	server, _, _ := bytes.Cut(name, []byte{0})
	_, server, ok = bytes.Cut(server, []byte("/"))
	return AheadSeconds, ok && string(server) == id
}

func claimKey(sid uint16) []byte { return strconv.AppendUint([]byte(claimPrefix), uint64(sid), 10) }
func toldKey(sid uint16) []byte  { return append(claimKey(sid), "/told"...) }

// claimOf takes the record of a claim apart; ok is false for every other record.
func claimOf(key, value []byte) (sid uint16, term uint64, ok bool) {
	digits, ok := bytes.CutPrefix(key, []byte(claimPrefix))
	if !ok {
		return 0, 0, false
	}
	n, err := strconv.ParseUint(string(digits), 10, 16)
	if err != nil {
		return 0, 0, false
	}
	term, err = strconv.ParseUint(string(value), 10, 64)
	return uint16(n), term, err == nil && term > 0
}

// readTold returns the greatest claim of this server that others have told it of, 0 where there is none.
func readTold(d *db.DB, sid uint16) (term uint64, err error) {
	value, _, err := d.Get(nil, nil, toldKey(sid))
	if errors.Is(err, db.ErrNoRecord) {
		return 0, nil
	}
	if err == nil {
		term, err = strconv.ParseUint(string(value), 10, 64)
	}
	if err != nil {
		return 0, fmt.Errorf("the record %q: %w", toldKey(sid), err)
	}
	return term, nil
}

// readClaims returns the claims in a database.
func readClaims(d *db.DB) (claims, error) {
	all := claims{}
	o := db.PageOptions{Prefix: []byte(claimPrefix), Records: 1000, Examine: 1000, Value: 32}
	for {
		page, err := d.Page(nil, o)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Records {
			if sid, term, ok := claimOf(r.Key, r.Value); ok {
				all[sid] = term
			}
		}
		if page.Next == nil || len(page.Records) == 0 {
			return all, nil
		}
		o.After = page.Next
	}
}

// claimIn is claimOf for an update.
func (r *Role) claimIn(u *ulog.Update) (sid uint16, term uint64, ok bool) {
	if u.Op != ulog.OpSet || !bytes.HasPrefix(u.Key, []byte(claimPrefix)) {
		return 0, 0, false
	}
	_, value, live := r.opts.DB.SplitStored(u.Value)
	if !live {
		return 0, 0, false
	}
	return claimOf(u.Key, value)
}

// claims are terms by server ID.
type claims map[uint16]uint64

// greatest returns the greatest term, whose it is, and whether it is that one's alone.
func (c claims) greatest() (sid uint16, term uint64, alone bool) {
	for s, t := range c {
		switch {
		case t > term:
			sid, term, alone = s, t, true
		case t == term:
			alone = false
			sid = min(sid, s)
		}
	}
	return sid, term, alone
}

// rivals returns the servers with the greatest term, smallest ID first.
func (c claims) rivals() (sids []uint16) {
	_, term, _ := c.greatest()
	for s := range c {
		if c[s] == term {
			sids = append(sids, s)
		}
	}
	slices.Sort(sids)
	return sids
}
