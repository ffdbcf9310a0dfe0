package primary

import (
	"bytes"
	"strconv"

	"gotycoon/db"
	"gotycoon/ulog"
)

// The records of the services' database as they matter here. What they mean to the services is told in coconut/records.go and
// jesync/fence.go.
//
//	key                              value
//	"primary" 00 SID                 TERM     claim of the server with this ID: only that writes it, and it only grows
//	"sequence" 00 ... , "lock" 00 ...  BOUND  of one server: only that writes it, and it only grows
//	others                                    of the primary
//
// Numbers are in decimal.
const claimPrefix = "primary\x00"

// growing begins the keys of records whose values only grow.
var growing = []string{claimPrefix, "sequence\x00", "lock\x00"}

// grows tells whether a record is one of those whose values only grow.
func grows(key []byte) bool {
	for _, prefix := range growing {
		if bytes.HasPrefix(key, []byte(prefix)) {
			return true
		}
	}
	return false
}

func claimKey(sid uint16) []byte { return strconv.AppendUint([]byte(claimPrefix), uint64(sid), 10) }

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
	return uint16(n), term, err == nil
}

// readClaims returns the claims in a database.
func readClaims(d *db.DB) (claims, error) {
	all := claims{}
	o := db.PageOptions{Prefix: []byte(claimPrefix), Records: 1000, Examine: 1000, Value: 32}
	for {
		page, err := d.Page(o)
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
	return sids
}
