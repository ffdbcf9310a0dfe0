package replication

import (
	"context"
	"fmt"
	"path"
	"time"

	"gotycoon/client"
	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/ulog"
)

// listTimeout limits the questions to an original master.
const listTimeout = 10 * time.Second

// greet takes the first message. It shows what kind of server the master is, whether it is the
// master of before, and whether its log reaches back to this server's position. The error says what
// is to be done before updates can be taken.
func (p *pull) greet(ctx context.Context, first frame.Message) error {
	hello, ours := first.Hello()
	if !ours {
		return p.greetOriginal(ctx)
	}
	p.hello, p.key = &hello, ulog.LogKey(hello.Log)
	f := p.f
	if f.elect.Term != 0 && hello.Term != f.elect.Term {
		return fmt.Errorf("%w: it leads term %d, and term %d is wanted", errTerm, hello.Term, f.elect.Term)
	}
	if hello.SID == f.opts.SID {
		f.opts.Logger.Warn(fmt.Sprintf("the master has the server ID of this one, %d: nothing will come from it", hello.SID))
	}
	if why := p.partedAtHello(); why != "" {
		return p.part(errParted, why)
	}
	if err := p.meetSuccessor(); err != nil {
		return err
	}
	if f.place.amends != amendsNone {
		p.forgetLost()
	}
	if err := p.meetLog(); err != nil {
		return err
	}
	p.meetServices()
	// Perhaps only the update that was asked for once more is gone (request), and nothing that this
	// server lacks: the next connection asks for what it lacks only.
	if hello.Gap && p.asked < f.place.needs(f.dbs) {
		f.unproven = true
		return errAgain
	}
	if hello.Gap {
		return p.copyAll()
	}
	p.meetDatabases(&hello)
	p.meetMaster()
	if f.place.incomplete() != nil {
		return errCopy
	}
	return nil
}

// copyAll notes that all databases are to be copied, because updates between the position and the
// beginning of the master's log are gone.
func (p *pull) copyAll() error {
	dbs := p.f.shared(p.hello)
	p.f.opts.Logger.Error(fmt.Sprintf("the master has not kept the updates after ts=%d, its log begins at ts=%d: fetching copies of its databases",
		p.f.place.needs(dbs), p.hello.First))
	p.f.place.copyAll(dbs)
	p.f.place.expectNothing()
	p.expect = 0
	p.f.tellPartial()
	return errCopy
}

// meetLog compares the master's log with the log that was followed before.
//
// A position in one log is no position in another log, but stamps of both logs are times. So after
// a change of the master the position is kept. An update that this server lacks, and that the new
// master received from the former one, has a later stamp in the new log than in the former log, so
// it comes. Updates that come again are dropped (marks).
//
// The updates that the new master has made itself are an exception: their stamps in the new log are
// older than those in the former log, which they reached with a delay. This server has them up to
// the mark of the new log, and asks for the updates behind the mark. Example: the new master made
// updates at 100 and 104. The first reached the former master, and came here from it; the second
// did not. This server's position in the former log is 105, the mark of the new log is 100. Asking
// the new master for the updates behind 105 would lose the update 104.
//
// If no update of the new master has come here yet, those that it makes from now on may still have
// older stamps than the position, when its clock is behind: the position comes from heartbeats, and
// the end of the former log may be a record that is for nobody. But they are newer than the record
// of any update that came to both servers, and a server's record of an update has a later stamp
// than the log that it came from. So they are behind the newest update that came here.
func (p *pull) meetLog() error {
	place := &p.f.place
	if place.master == p.key {
		return nil
	}
	changed, newest := place.master != 0 && p.f.elect.Term == 0, p.newest()
	// partedAtHello needs these three to be of the same server.
	place.master, place.sid, place.sidKnown = p.key, p.hello.SID, true
	place.expectNothing()
	p.expect = 0
	place.leaveLog()
	// The new master may have records that the former one had not got yet.
	if changed && p.servesServices() && p.f.opts.Services != nil {
		place.copyAgain(db.ServicesIndex)
	}
	mark, known := place.marks[p.key]
	if changed && !known && p.hello.Past == nil {
		p.f.opts.Logger.Warn(fmt.Sprintf("the master's log is another than that which was followed up to ts=%d, and goes on from there: the master is of an "+
			"earlier version and does not tell whether it followed the former master; if it did not, it may have had updates that do not come", place.position))
	}
	if !known {
		mark = newest
	}
	if !changed || mark == 0 || mark >= place.position {
		return nil
	}
	p.f.opts.Logger.Info(fmt.Sprintf("another master: its own updates are here up to ts=%d at most, and are asked for from there", mark))
	place.position = mark
	return errAgain
}

// greetOriginal asks an original master whether its log reaches back to the position. Without being
// asked, an original master would begin at the oldest update that it has, and say nothing of those
// that are gone.
func (p *pull) greetOriginal(ctx context.Context) error {
	f := p.f
	p.meetServices()
	if f.place.incomplete() != nil {
		f.opts.Logger.Warn("databases that have come up empty need a copy of the master's, which it cannot give: they get what comes now")
		f.place.parts = nil
	}
	f.place.master, f.place.sidKnown, f.place.amends = 0, false, amendsNone
	f.place.expectNothing()
	p.expect = 0
	at := f.place.position
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	c := client.New(p.master.address(), client.Options{Dial: f.dialClient})
	defer c.Close()
	gap, err := misses(ctx, c, at, f.opts.SID)
	switch {
	case err != nil:
		f.opts.Logger.Info(fmt.Sprintf("the master does not tell which updates it has kept: %v", err))
		return nil
	case !gap:
		return nil
	case f.opts.GapContinue:
		f.opts.Logger.Error(fmt.Sprintf("the master has not kept the updates after ts=%d: going on without them, as -gap-continue says", at))
		return nil
	}
	return fmt.Errorf("%w: those after ts=%d. Give this server a copy of the master's databases and put the copy's time stamp into the RTS file, or "+
		"start it with -gap-continue to go on without them", errGap, at)
}

// misses reports whether an original server has removed updates newer than a stamp. If so, its
// oldest log file is not the first one that it ever had, and begins with a newer stamp.
func misses(ctx context.Context, c *client.Client, at ulog.Stamp, sid uint16) (bool, error) {
	files, err := c.UlogList(ctx)
	if err != nil {
		return false, err
	}
	if len(files) == 0 || path.Base(files[0].Path) == "0000000001.ulog" || ulog.Stamp(files[0].Last) <= at {
		return false, nil
	}
	for u, err := range c.FollowLog(ctx, 0, ^sid, false) { // the first update of the oldest file
		return err == nil && !u.Heartbeat && ulog.Stamp(u.TS) > at, err
	}
	return false, nil
}
