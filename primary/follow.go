package primary

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"gotycoon/db"
	"gotycoon/ulog"
)

// Prepare looks at updates of other servers before they are stored, and ends the services of this one if they have a greater claim than its
// own. refresh tells that the primary is another now, so what is here may be more than that knows of: the master's database is to be
// copied, and before the end of that (Partial) this server can hardly be the primary.
//
// A greater claim of this server than it knows of itself tells that it has been replaced, or restored from a backup.
func (r *Role) Prepare(ups []ulog.Update) (refresh bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, _, known := r.claims.greatest()
	changed := false
	for i := range ups {
		sid, term, ok := r.claimIn(&ups[i])
		if !ok || term <= r.claims[sid] {
			continue
		}
		if sid == r.opts.SID { // not to be forgotten, whatever becomes of the updates
			if err := r.opts.DB.Set(nil, toldKey(sid), strconv.AppendUint(nil, term, 10), db.Never); err != nil {
				return false, err
			}
		}
		r.claims[sid] = term
		changed = true
	}
	if !changed {
		return false, nil
	}
	if err := r.decide(); err != nil {
		return false, err
	}
	sid, term, alone := r.claims.greatest()
	lost := sid == r.opts.SID && term != r.ours
	if !alone || !lost && (sid == r.opts.SID || known && sid == before) {
		return false, nil
	}
	n, err := r.opts.DB.Count(nil)
	if n == 0 && len(r.claims) == 1 && !lost {
		return false, err // nothing is here that the primary has not made, and nothing of a former one is to come
	}
	if !known && n > 0 {
		r.opts.Logger.Warn(fmt.Sprintf("server %d is the primary: what this one has of quotas becomes what that one has", sid))
	}
	r.partial = true
	return true, err
}

// Follow stores updates of other servers, as db.(*DB).Follow does, as far as they are for others to make. copied tells that they are of a copy
// of the master's database: what it says of the primary's records counts as made by that.
func (r *Role) Follow(p *db.Pending, ups []ulog.Update, note db.Noting, copied bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sid, _, alone := r.claims.greatest(); copied && alone {
		for i := range ups {
			if !grows(ups[i].Key) {
				ups[i].SID = sid
			}
		}
	}
	for i := range ups {
		if err := r.regain(p, &ups[i]); err != nil {
			return err
		}
	}
	return r.opts.DB.FollowSome(p, ups, note, func(u *ulog.Update) (bool, error) { return r.takes(p, u, copied) })
}

// takes tells whether an update is to be stored. mu is held.
func (r *Role) takes(p *db.Pending, u *ulog.Update, copied bool) (bool, error) {
	switch {
	case u.Op == ulog.OpClear:
		r.opts.Logger.Error(fmt.Sprintf("server %d has cleared the services' database; this one's stays as it is", u.SID))
		return false, nil
	case grows(u.Key):
		return r.raises(p, u)
	}
	_, term, known := r.claims.greatest()
	if term > 0 && term == r.ours {
		return false, nil // this server's to make, even while it does not serve: before it has heard of others, and while another one's claim is equal
	}
	return copied || !known || r.claims[u.SID] == term, nil
}

// regain raises a bound of this server above what others know of it, if that is more than it knows itself: what it gave out is in what it has
// lost, and went on further than they have been told. Like all that it makes itself it may be raised at the same time.
func (r *Role) regain(p *db.Pending, u *ulog.Update) error {
	ahead, own := ownBound(u.Key, r.opts.SID)
	told, ok := r.number(u)
	if !own || !ok {
		return nil
	}
	for {
		old, _, err := r.opts.DB.Get(p, nil, u.Key)
		if errors.Is(err, db.ErrNoRecord) {
			old, err = nil, nil
		}
		if err != nil {
			return err
		}
		if has, err := strconv.ParseUint(string(old), 10, 64); err == nil && has >= told {
			return nil
		}
		err = r.opts.DB.CAS(p, u.Key, old, strconv.AppendUint(nil, max(told, told+ahead), 10), db.Never)
		if !errors.Is(err, db.ErrConflict) {
			return err
		}
	}
}

// number returns what an update sets a record to that only grows.
func (r *Role) number(u *ulog.Update) (n uint64, ok bool) {
	if u.Op != ulog.OpSet {
		return 0, false
	}
	_, value, live := r.opts.DB.SplitStored(u.Value)
	n, err := strconv.ParseUint(string(value), 10, 64)
	return n, live && err == nil
}

// raises tells whether an update makes the value of a record greater.
func (r *Role) raises(p *db.Pending, u *ulog.Update) (bool, error) {
	n, ok := r.number(u)
	if _, own := ownBound(u.Key, r.opts.SID); !ok || own || bytes.Equal(u.Key, claimKey(r.opts.SID)) {
		return false, nil // nothing that a server writes there; or this one's, see regain and Prepare
	}
	old, _, err := r.opts.DB.Get(p, nil, u.Key)
	if errors.Is(err, db.ErrNoRecord) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	has, err := strconv.ParseUint(string(bytes.TrimSpace(old)), 10, 64)
	return err != nil || n > has, nil
}
