package replication

import (
	"fmt"

	"gotycoon/db"
	"gotycoon/ulog"
)

// A master that has lost updates.
//
// Problem. A position says that every update up to here is in this server's databases, and a
// follower asks for the updates behind its position. Such a request does not show that the master
// has lost updates that the follower has. A master that was restored from a backup, lost the end of
// its log in a power cut, or came back with an empty disk goes on from an older state. The follower
// would apply what the master does from then on, and the two servers would differ for good.
//
//	the follower has    100  110  120
//	the master lost     110  120
//	the master writes   115    the follower asks for what comes behind 120, and never gets 115
//
// Rule. Three signs show that updates are lost:
//
//   - The master's log ends before the newest update that the follower has from it.
//   - The update that the follower received last (place.seen) is no longer in the master's log.
//     The follower asks for that update once more at each connection, and drops it. This finds a
//     master whose log has meanwhile grown past the place where it was cut. After a full copy, seen
//     is the newest update in the master's log when the copy began, as the master told with the
//     copy. If several databases are copied, each copy raises seen, because the last copy may be
//     much newer than the position, which is the instant of the first copy.
//   - The server with the same ID has another log, and does not prove that it has what the former
//     log had. What a server with another ID has to prove is in succession.go.
//
// The updates that only the follower has may be the last copy of acknowledged ones. So a follower
// never replaces its data by itself. If all databases keep versions (lww=true), a copy only adds
// what is newer, so the follower fetches copies. Otherwise it refuses to go on, and says so every
// ten seconds, until an operator decides (see partedRemedy).
//
// Rejected: the first sign alone, which needs no update to be sent twice. It fails once the master
// has written an update newer than the lost ones: then the log ends late enough, and the loss stays
// unseen.

// partedRemedy returns the commands that make a follower and its master agree again.
func partedRemedy(m Master) string {
	at := fmt.Sprintf("-mport %d", m.Port)
	return fmt.Sprintf("Decide whose data count, and run on this server: to replace its data by the master's, 'ktremotemgr tunerepl %[1]s -copy %[2]s'; to keep both as "+
		"they are and go on with what the master does from now on, 'ktremotemgr tunerepl %[1]s -ts now %[2]s'; to keep this server's data and make it the master, "+
		"'ktremotemgr tunerepl' without a master, and then have the other server follow it with -copy", at, m.Host)
}

// partedAtHello returns the sign in the master's first message that the master has lost updates,
// "" if there is none.
func (p *pull) partedAtHello() string {
	place := &p.f.place
	if place.amends != amendsNone {
		return ""
	}
	at := place.marks[p.key]
	if place.master == p.key {
		at = max(at, place.seen, place.copied)
	}
	if p.hello.Last < uint64(at) {
		return fmt.Sprintf("the log of server %d ends at ts=%d, but this server has updates from it up to ts=%d", p.hello.SID, p.hello.Last, at)
	}
	return ""
}

// partedInStream checks the stamp of a message. A stamp newer than expect shows that the master's
// log lacks the update expect, which this server received last.
func (p *pull) partedInStream(at ulog.Stamp) error {
	if p.expect == 0 || at < p.expect {
		return nil
	}
	if at == p.expect {
		p.expect = 0
		return nil
	}
	return p.part(errParted, fmt.Sprintf("the log of server %d goes on at ts=%d and no longer has the update with ts=%d, which this server has from it",
		p.hello.SID, at, p.expect))
}

// part is called when the master lacks updates. It returns errCopy if copies can make this server
// equal to the master without losing anything newer, else the sign, errParted or errStranger.
func (p *pull) part(sign error, why string) error {
	f := p.f
	dbs := f.shared(p.hello)
	for _, i := range dbs {
		if i != db.ServicesIndex && !f.opts.Catalog.DB(int(i)).Info().KeepsVersions {
			return fmt.Errorf("%w: %s. %s", sign, why, partedRemedy(p.master))
		}
	}
	f.opts.Logger.Error(fmt.Sprintf("%v: %s. Fetching copies of its databases, of which the newer records count (lww=true). The master lacks what only "+
		"this server has until it follows this server and is given a copy too: ktremotemgr tunerepl -copy", sign, why))
	f.place.master, f.place.sid, f.place.sidKnown = p.key, p.hello.SID, true
	f.place.amends = amendsVersions
	f.place.copyAll(dbs)
	p.forgetLost()
	f.tellPartial()
	return errCopy
}

// forgetLost forgets which updates the master's log must have: the log has lost them, and copies
// make this server equal to the master without them.
func (p *pull) forgetLost() {
	place := &p.f.place
	delete(place.marks, p.key)
	place.expectNothing()
	p.expect = 0
}

// meetMaster notes whose log is followed. Amends end when nothing is left to be copied.
func (p *pull) meetMaster() {
	place := &p.f.place
	place.sid, place.sidKnown = p.hello.SID, true
	if place.incomplete() == nil {
		place.amends = amendsNone
	}
}
