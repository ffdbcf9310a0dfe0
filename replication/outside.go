package replication

import (
	"errors"
	"fmt"
	"io"

	"gotycoon/client/wire/frame"
	"gotycoon/ulog"
)

// Slaves outside of a cluster.
//
// # The problem
//
// A slave that is no member, such as one of the original, knows neither terms nor logs. It has one
// number, the stamp of the newest message that it was sent, and asks whichever server it is turned
// to for what is newer. The members elect another primary, and each has stamps of its own. Three
// things would go wrong:
//
//   - A slave gets an update that only the primary has. The primary dies, the others go on without
//     the update, and the slave keeps it for ever.
//   - A member that was away has stored updates late, with late stamps. A slave that goes over to
//     another member with such a stamp is not sent what it lacks.
//   - A member that got its data by a copy has in its log only how the copy differed from what it
//     had before. That is no way from what the slave has to what the copy had.
//
// # The rules
//
//   - A stream to anybody but a member has only updates that the required number of members has.
//     The stream keeps the first one that is not confirmed in hand (held), and goes on with
//     heartbeats for what it has sent. Only the primary counts members: a follower sends whatever
//     it has. That is confirmed where one follower is required; where two are, it may not be.
//   - A server that neither leads nor follows feeds no such slave, and one that follows ends the
//     stream at an update that the cluster's history does not have: a former primary has such
//     updates until they are put aside.
//   - A slave of the original is told, for an update that was made in a term of the cluster, the
//     stamp that the update has in the log of that term's primary. These stamps are the same on all
//     members, and they grow along the history: a primary begins with stamps above all that it has
//     received. In each log an update has the same stamp or a later one, so a reader that begins
//     behind the slave's stamp passes over nothing that the slave lacks, and what it has already is
//     left out.
//   - Only the primary promises a later stamp than that of the newest update sent: a follower does
//     not know which stamps the primary gives to what it has not got yet.
//   - A slave of the original that lacks what a member has got by a copy is refused by that member.
//     Others may have it as single updates.
//   - A stream ends when a copy begins to be stored.
//
// The stamps of two terms are those of two clocks, so a heartbeat without an update may promise too
// much where the clock of the next primary is more than a second behind (heartbeatLag).
//
// # What was rejected
//
// Own stamps and a repetition of what may be missing: a slave of the original keeps the largest
// stamp that it has ever seen, so a repetition that is cut off leaves it with old values for good.

// outside is what a stream to a slave outside of the cluster heeds.
type outside struct {
	source *Source
	plain  bool                         // it is of the original
	after  ulog.Stamp                   // what it has
	made   func(log, stamp uint64) bool // as SourceOptions.Made has returned it
	base   Base
	begun  ulog.Stamp // end of the log when the stream began

	// of a watch, see watch.go: the number of followers that its database requires, below 0 that of
	// the server. Updates of a master need none without a cluster.
	required int

	held *ulog.Entry // read, and not confirmed when the stream last looked; nil: none

	term uint64                       // of lost
	lost func(log, stamp uint64) bool // as SourceOptions.Lost has returned it
}

var (
	errFetching  = errors.New("this server is fetching a copy of the primary's databases")
	errUndecided = errors.New("this server is not the primary and follows none, so it may have updates that the cluster goes on without")
)

// strangerTo returns what the stream to a follower heeds, nil for a member and without a cluster.
// The error says why this server cannot feed the slave.
func (s *Source) strangerTo(member bool, f frame.Follow) (*outside, error) {
	if s.opts.Made == nil || member {
		return nil, nil
	}
	if s.opts.Term() == 0 && s.opts.Follows() == 0 {
		return nil, errUndecided
	}
	if !f.Extended() {
		return s.strangerAfter(ulog.Stamp(f.TS))
	}
	return &outside{source: s, after: ulog.Stamp(f.TS), made: s.opts.Made(), begun: s.opts.Log.Last(), required: ofServer}, nil
}

// ofServer as a number of followers means the server's number.
const ofServer = -1

// strangerAfter is strangerTo for whoever knows nothing but a stamp.
func (s *Source) strangerAfter(after ulog.Stamp) (*outside, error) {
	if s.opts.Term() == 0 && s.opts.Follows() == 0 {
		return nil, errUndecided
	}
	o := &outside{source: s, plain: true, after: after, made: s.opts.Made(), begun: s.opts.Log.Last(), required: ofServer}
	l := s.opts.Lineage()
	o.base = l.Base
	switch {
	case l.Partial:
		return nil, errFetching
	case after > 0 && after < l.Base.At:
		return nil, fmt.Errorf("this server got its data up to ts=%d by a copy, and its log has no single updates "+
			"before that: let it follow another member, or %s", l.Base.At, remedy)
	}
	return o, nil
}

// from returns the stamp behind which the log of this server has what the slave lacks.
func (o *outside) from(f frame.Follow) ulog.Stamp { return o.reads(ulog.Stamp(f.TS)) }

// reads returns where a reader begins for whoever has everything up to a stamp.
func (o *outside) reads(after ulog.Stamp) ulog.Stamp {
	if o == nil || !o.plain || after == 0 {
		return after
	}
	return max(after, o.base.Own)
}

// next returns the next update that a reader of the log has for the slave, with the stamp that the
// slave is told, or io.EOF when none is confirmed.
func (o *outside) next(r *ulog.Reader) (ulog.Entry, error) {
	for {
		if o.held == nil {
			e, err := r.Next()
			if err != nil {
				return e, err
			}
			o.held = &e
		}
		if o.unconfirmed() {
			return ulog.Entry{}, io.EOF
		}
		e := *o.held
		if !o.lasts(e) {
			return e, errEnded
		}
		o.held = nil
		if !o.plain {
			return e, nil
		}
		if o.copied(e) {
			return e, errEnded
		}
		if e.Stamp = o.told(e); e.Stamp > o.after || o.after == 0 {
			return e, nil
		}
	}
}

// lasts reports whether an update may leave: this server is the primary, or follows one and the
// update belongs to the history of the cluster. Otherwise it may be a former primary, which has
// what is about to be put aside. It is asked after unconfirmed: a primary that steps down ceases to
// be it before it ceases to require followers.
func (o *outside) lasts(e ulog.Entry) bool {
	s := &o.source.opts
	if s.Made == nil || s.Term() > 0 {
		return true
	}
	term := s.Follows()
	if term == 0 {
		return false
	}
	if o.lost == nil || o.term != term {
		o.term, o.lost = term, s.Lost()
	}
	log, at := e.Origin.Log, e.Origin.Stamp
	if log == 0 {
		log, at = ulog.LogKey(s.Log.ID()), e.Stamp
	}
	return log == ulog.UnknownLog || !o.lost(log, uint64(at))
}

// unconfirmed reports whether the update in hand must not leave yet.
func (o *outside) unconfirmed() bool {
	switch {
	case o == nil || o.held == nil || o.source.opts.Quorum == nil:
		return false
	case o.made == nil && o.held.Origin.Log != 0:
		return false
	}
	return o.source.opts.Quorum.usual(o.required) < o.held.Stamp
}

// copied reports whether an update that has come since the stream began is a part of a copy:
// otherwise a server that is not the primary gets nothing but updates of terms.
func (o *outside) copied(e ulog.Entry) bool {
	return e.Stamp > o.begun && o.source.opts.Term() == 0 && !o.ofTerm(e)
}

// ofTerm reports whether an update has come from the primary of a term. A term may have begun since
// the last look.
func (o *outside) ofTerm(e ulog.Entry) bool {
	if e.Origin.Log == 0 || o.made(e.Origin.Log, uint64(e.Origin.Stamp)) {
		return e.Origin.Log != 0
	}
	o.made = o.source.opts.Made()
	return o.made(e.Origin.Log, uint64(e.Origin.Stamp))
}

// told returns the stamp that a slave is told for an update. What a copy has brought, and what is
// older, is sent only to a slave that begins with the log: it comes back as one that lacks the copy
// until it has all of it.
func (o *outside) told(e ulog.Entry) ulog.Stamp {
	at := e.Stamp
	if o.ofTerm(e) {
		at = e.Origin.Stamp
	}
	if e.Stamp <= o.base.Own {
		at = min(at, o.base.At-1)
	}
	return at
}

// promises returns what a stream may promise beyond the updates that it has sent.
func (o *outside) promises(primary bool, at ulog.Stamp) ulog.Stamp {
	if o != nil && (o.held != nil || o.plain && !primary) {
		return 0
	}
	return at
}
