package leader

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/pages"
	"gotycoon/ulog"
)

// The records of the services' database, as far as this package tells them apart. records.go of
// services/sequence and services/quota, and fence.go of services/lock, draw what is in the records.
//
//	key                               value
//	"primary" 00 SID                  TERM   claim of SID; only SID writes it, it only grows
//	"primary" 00 SID "/told"          TERM   greatest claim that peers know and SID has lost
//	"sequence" 00 ... "/" SID 00 ...  BOUND  of SID; only SID writes it, it only grows
//	"lock" 00 "fence" 00 SID          BOUND  the same
//	all others                               records of the primary
//
// Numbers are decimal. Bounds without a SID in their keys were written by older versions, on
// any server.
const (
	claimPrefix    = "primary\x00"
	SequencePrefix = "sequence\x00"  // prefix of the bounds of sequences
	FencePrefix    = "lock\x00fence" // prefix of the bounds of fencing tokens; 00 SID follows
)

// A server that takes over starts its numbers this far above the highest bound that it knows. The
// gap covers numbers that the former primary handed out under a bound that it had not yet
// replicated. A server that has lost its newest bound leaves the same gap above the bound that its
// peers remember (regain).
//
// Example: the former primary reserves the tokens below 3,000,000, hands out token 2,500,000 and
// loses power; its peers know the bound 2,000,000. The new primary starts at 2,000,000 +
// AheadTokens or above, so above every token handed out so far. A lock holder with token
// 2,500,000 therefore loses against the new holder, as it must.
const (
	AheadSeconds = 60      // of sequences
	AheadTokens  = 1 << 40 // for fencing
)

// growing has the prefixes of the keys of records whose values only grow.
var growing = []string{claimPrefix, SequencePrefix, FencePrefix}

// grows reports whether a record is of a kind whose values only grow.
func grows(key []byte) bool {
	for _, prefix := range growing {
		if bytes.HasPrefix(key, []byte(prefix)) {
			return true
		}
	}
	return false
}

// ownBound reports whether a key is that of a bound of the server sid. ahead is how far above a
// lost bound the server goes on.
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

// readTold returns the greatest claim that peers know of this server and this server has lost, 0 if
// there is none.
func readTold(d *db.DB, sid uint16) (term uint64, err error) {
	value, _, err := d.Get(nil, nil, toldKey(sid))
	if errors.Is(err, dberr.ErrNoRecord) {
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
	o := pages.Options{Prefix: []byte(claimPrefix), Records: 1000, Examine: 1000, Value: 32}
	for {
		page, err := pages.Of(d, nil, o)
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

// greatest returns the greatest term and the server that claimed it. alone reports that no other
// server has claimed the same term; without a claim it is false.
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
