package replication

import (
	"errors"
	"fmt"
	"slices"

	"gotycoon/db"
	"gotycoon/ulog"
)

// A master that has gone back.
//
// A position in a log means "everything up to here is in this follower's databases", and a follower asks for what comes behind
// it. That says nothing about updates which the follower has and the master no longer does: a master that was restored from a
// backup, lost the end of its log in a power cut, or came back with an empty disk, goes on from an older state. The follower
// would get what the master does from then on, and the two would differ for good.
//
// Three signs tell it:
//
//   - the master's log ends before an update that the follower has from there;
//   - the update that the follower received last (place.seen) is not in the log any more. The follower asks for that update
//     once more at each connection, and drops it. By then the log may well have newer ones. After a full copy it is the newest update in the
//     log when the copy was begun, which the master tells with the copy: of each copy, because the last of several may be much newer than
//     the position, which is that of the first;
//   - the server with the same ID has another log. A server with another ID is another master, to which somebody has turned
//     this one (tune_replication, or an address that moved): that is no sign.
//
// What the follower has and the master lacks may be the only copy of acknowledged updates, so no follower replaces its data with
// the master's by itself. Where all databases keep versions (lww=true) a copy only adds what is newer, and is fetched. Otherwise
// the follower refuses to go on, and says so every ten seconds, until somebody decides (see partedRemedy).

// errParted ends a connection to a master that lacks updates which this server has from it.
var errParted = errors.New("the master has lost updates that this server has from it")

// partedRemedy returns the commands that make a follower and its master agree again.
func partedRemedy(m Master) string {
	at := fmt.Sprintf("-mport %d", m.Port)
	return fmt.Sprintf("Decide whose data count, and run on this server: to replace its data by the master's, 'ktremotemgr tunerepl %[1]s -copy %[2]s'; to keep both as "+
		"they are and go on with what the master does from now on, 'ktremotemgr tunerepl %[1]s -ts now %[2]s'; to keep this server's data and make it the master, "+
		"'ktremotemgr tunerepl' without a master, and then have the other server follow it with -copy", at, m.Host)
}

// amends is how a follower is going to be made equal to a master that has gone back. The numbers are stored in places.
type amends byte

const (
	amendsNone     amends = iota
	amendsVersions        // by copies with versions: nothing newer is lost
	amendsCopies          // by copies of whatever kind: somebody has said that the master's data count
)

// partedAtHello returns by what the master's first message shows that it has gone back, "" where it does not.
func (p *pull) partedAtHello() string {
	place := &p.f.place
	if place.amends != amendsNone {
		return ""
	}
	at := place.marks[p.key]
	switch {
	case place.master == p.key:
		at = max(at, place.seen, place.copied)
	case place.master != 0 && place.sidKnown && place.sid == p.hello.SID:
		return fmt.Sprintf("server %d has another update log than the one that was followed up to ts=%d", p.hello.SID, place.position)
	}
	if p.hello.Last < uint64(at) {
		return fmt.Sprintf("the log of server %d ends at ts=%d, but this server has updates from it up to ts=%d", p.hello.SID, p.hello.Last, at)
	}
	return ""
}

// partedInStream returns an error when a message with a stamp shows that the log lacks the update that this server has received last.
func (p *pull) partedInStream(at ulog.Stamp) error {
	if p.expect == 0 || at < p.expect {
		return nil
	}
	if at == p.expect {
		p.expect = 0
		return nil
	}
	return p.part(fmt.Sprintf("the log of server %d goes on at ts=%d and no longer has the update with ts=%d, which this server has from it",
		p.hello.SID, at, p.expect))
}

// part returns errCopy where copies make this server equal to a master that has gone back without losing anything newer, or errParted.
func (p *pull) part(why string) error {
	f := p.f
	dbs := f.shared(p.hello)
	for _, i := range dbs {
		if i != db.ServicesIndex && !f.opts.Catalog.DB(int(i)).KeepsVersions() {
			return fmt.Errorf("%w: %s. %s", errParted, why, partedRemedy(p.master))
		}
	}
	f.opts.Logger.Error(fmt.Sprintf("%v: %s. Fetching copies of its databases, of which the newer records count (lww=true). The master lacks what it has "+
		"lost until it follows this server and is given a copy too: ktremotemgr tunerepl -copy", errParted, why))
	f.place.master, f.place.sid, f.place.sidKnown = p.key, p.hello.SID, true
	f.place.amends = amendsVersions
	f.place.copyAll(dbs)
	p.amend()
	f.tellPartial()
	return errCopy
}

// amend forgets what this server has of a master whose databases are going to be copied: it is not in the master's log any more.
func (p *pull) amend() {
	place := &p.f.place
	delete(place.marks, p.key)
	place.expectNothing()
	p.expect = 0
}

// meetMaster notes whose log is followed. Amends that leave nothing to be copied are made.
func (p *pull) meetMaster() {
	place := &p.f.place
	place.sid, place.sidKnown = p.hello.SID, true
	if place.incomplete() == nil {
		place.amends = amendsNone
	}
}

// Recopy has all databases replaced by copies of those of the next master that Tune names, whatever they hold.
func (f *Follower) Recopy() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recopy = true
}

// beginAmends notes that somebody wants copies.
func (f *Follower) beginAmends() {
	f.place.amends = amendsCopies
	f.place.copyAll(slices.Clone(f.dbs))
	f.tellPartial()
	f.save()
}
