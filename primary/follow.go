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
func (r *Role) Prepare(ups []ulog.Update) (refresh bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, _, known := r.claims.greatest()
	changed := false
	for i := range ups {
		if sid, term, ok := r.claimIn(&ups[i]); ok && term > r.claims[sid] {
			r.claims[sid] = term
			changed = true
		}
	}
	if !changed {
		return false, nil
	}
	if err := r.decide(); err != nil {
		return false, err
	}
	if sid, _, alone := r.claims.greatest(); !alone || sid == r.opts.SID || known && sid == before {
		return false, nil
	}
	n, err := r.opts.DB.Count()
	r.partial = r.partial || n > 0
	return n > 0, err
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
	return r.opts.DB.FollowSome(p, ups, note, func(u *ulog.Update) (bool, error) { return r.takes(u, copied) })
}

// takes tells whether an update is to be stored. mu is held.
func (r *Role) takes(u *ulog.Update, copied bool) (bool, error) {
	switch {
	case u.Op == ulog.OpClear:
		r.opts.Logger.Error(fmt.Sprintf("server %d has cleared the services' database; this one's stays as it is", u.SID))
		return false, nil
	case grows(u.Key):
		return r.raises(u)
	case r.term.Load() != 0:
		return false, nil
	}
	_, term, known := r.claims.greatest()
	return copied || !known || r.claims[u.SID] == term, nil
}

// raises tells whether an update makes the value of a record greater.
func (r *Role) raises(u *ulog.Update) (bool, error) {
	if u.Op != ulog.OpSet {
		return false, nil
	}
	_, value, live := r.opts.DB.SplitStored(u.Value)
	n, err := strconv.ParseUint(string(value), 10, 64)
	if !live || err != nil {
		return false, nil //nolint:nilerr // nothing that a server writes there
	}
	old, _, err := r.opts.DB.Get(nil, u.Key)
	if errors.Is(err, db.ErrNoRecord) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	has, err := strconv.ParseUint(string(bytes.TrimSpace(old)), 10, 64)
	return err != nil || n > has, nil
}
