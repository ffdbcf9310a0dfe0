package leader

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

// Prepare looks at updates of other servers before they are stored. If they hold a claim that is as
// great as this server's, or greater, Prepare ends the services of this server before it returns.
// refresh reports that another server has become the primary, or that this server has lost what it
// made as the primary: records here may be unknown to the primary, so the caller has to fetch a
// copy of the master's database. Until the end of the copy (Partial) Claim needs force.
//
// A claim of this server itself, with a term above its own record, means that this server was
// replaced or restored from a backup: see "Servers that have lost data" in doc.go.
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
		// Replicate does not store this update (see raises), so its term is remembered here.
		if sid == r.opts.SID {
			if err := r.opts.DB.Set(nil, toldKey(sid), strconv.AppendUint(nil, term, 10), record.Never); err != nil {
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
	if r.opts.Cluster { // the primary has everything that is here, or this server gets a copy of all
		return false, nil
	}
	sid, term, alone := r.claims.greatest()
	lost := sid == r.opts.SID && term != r.ours
	if !alone || !lost && (sid == r.opts.SID || known && sid == before) {
		return false, nil
	}
	n, err := r.opts.DB.Count(nil)
	if n == 0 && len(r.claims) == 1 && !lost {
		// All records here were made by the primary, and no records of a former primary are to
		// come.
		return false, err
	}
	if !known && n > 0 {
		r.opts.Logger.Warn(fmt.Sprintf("server %d is the primary: what this one has of quotas becomes what that one has", sid))
	}
	r.partial = true
	return true, err
}

// Replicate stores updates of other servers, as db.(*DB).Replicate does, but only those that
// another server may make (takes). copied says that the updates are records of a copy of the
// master's database: they do not say who made them, so the primary's records among them get the
// primary's ID as their origin.
func (r *Role) Replicate(p *db.Pending, ups []ulog.Update, note func(n int) *ulog.Position, copied bool) error {
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
	return r.opts.DB.Replicate(p, ups, note, func(u *ulog.Update) (bool, error) { return r.takes(p, u, copied) })
}

// takes reports whether an update is to be stored. mu is held.
func (r *Role) takes(p *db.Pending, u *ulog.Update, copied bool) (bool, error) {
	switch {
	case u.Op == ulog.OpClear:
		r.opts.Logger.Error(fmt.Sprintf("server %d has cleared the services' database; this server keeps its records", u.SID))
		return false, nil
	case grows(u.Key):
		return r.raises(p, u)
	case r.opts.Cluster:
		// Whom this server follows is the primary, whatever the claims say: this server may know a
		// claim of its own that no other has, from a term that it did not live to begin.
		return true, nil
	}
	_, term, known := r.claims.greatest()
	if term > 0 && term == r.ours {
		// The records are this server's to write, also while it does not serve: before it has heard
		// of others, and while the claim of another server is equal.
		return false, nil
	}
	return copied || !known || r.claims[u.SID] == term, nil
}

// regain handles a server that has lost data. If a peer remembers a higher bound for this server
// than this server's own record says, the bound is raised AheadSeconds or AheadTokens above the
// peer's value: before the loss this server may have handed out numbers that the peer never heard
// of. The service may write the same record at the same time, hence the CAS.
func (r *Role) regain(p *db.Pending, u *ulog.Update) error {
	ahead, own := ownBound(u.Key, r.opts.SID)
	told, ok := r.number(u)
	if !own || !ok {
		return nil
	}
	for {
		old, _, err := r.opts.DB.Get(p, nil, u.Key)
		if errors.Is(err, dberr.ErrNoRecord) {
			old, err = nil, nil
		}
		if err != nil {
			return err
		}
		if has, err := strconv.ParseUint(string(old), 10, 64); err == nil && has >= told {
			return nil
		}
		err = r.opts.DB.CAS(p, u.Key, old, strconv.AppendUint(nil, max(told, told+ahead), 10), record.Never)
		if !errors.Is(err, dberr.ErrConflict) {
			return err
		}
	}
}

// number returns the value that an update gives to a record whose values only grow.
func (r *Role) number(u *ulog.Update) (n uint64, ok bool) {
	if u.Op != ulog.OpSet {
		return 0, false
	}
	_, value, live := r.opts.DB.SplitStored(u.Value)
	n, err := strconv.ParseUint(string(value), 10, 64)
	return n, live && err == nil
}

// raises reports whether an update makes the value of a record greater. This server's own records
// are not raised here: regain raises its bounds, and Prepare remembers its claims.
func (r *Role) raises(p *db.Pending, u *ulog.Update) (bool, error) {
	n, ok := r.number(u)
	if _, own := ownBound(u.Key, r.opts.SID); !ok || own || bytes.Equal(u.Key, claimKey(r.opts.SID)) {
		return false, nil // not a number; or this server's own record
	}
	old, _, err := r.opts.DB.Get(p, nil, u.Key)
	if errors.Is(err, dberr.ErrNoRecord) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	has, err := strconv.ParseUint(string(bytes.TrimSpace(old)), 10, 64)
	return err != nil || n > has, nil
}
