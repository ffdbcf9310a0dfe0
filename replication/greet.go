package replication

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"gotycoon/binproto/frame"
	"gotycoon/client"
	"gotycoon/db"
	"gotycoon/ulog"
)

// errCopy ends a connection because databases are to be copied first.
var errCopy = errors.New("databases have to be copied")

// listTimeout limits the questions to an original master.
const listTimeout = 10 * time.Second

// greet finds out by the first message what kind of server the master is, and whether its log reaches back to where this server is.
func (p *pull) greet(ctx context.Context, first frame.Message) error {
	hello, ours := first.Hello()
	if !ours {
		return p.greetOriginal(ctx)
	}
	p.hello, p.key = &hello, ulog.LogKey(hello.Log)
	f := p.f
	if hello.SID == f.opts.SID {
		f.opts.Logger.Warn(fmt.Sprintf("the master has the server ID of this one, %d: nothing will come from it", hello.SID))
	}
	if why := p.partedAtHello(); why != "" {
		return p.part(why)
	}
	if f.place.amends != amendsNone {
		p.amend()
	}
	if err := p.meetLog(); err != nil {
		return err
	}
	p.meetServices()
	if hello.Gap && p.asked < f.place.needs(f.dbs) { // only the update asked for once more is gone, perhaps
		f.unproven = true
		return errAgain
	}
	if hello.Gap {
		return p.copyAll()
	}
	f.refreshDue()
	f.place.without(func(db uint16) bool { return masterHas(&hello, db) })
	if hello.Services {
		f.tellPartial()
	}
	p.meetMaster()
	if f.place.incomplete() != nil {
		return errCopy
	}
	return nil
}

// copyAll notes that the log is of no use without copies of the databases.
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

// meetLog compares the master's log with the one that was followed before. A position in the one is none in the other, but both are times:
// what the former master had is sent with later stamps by the new one, which got it later. What the new one has made itself may be older, and
// has come up to the mark.
func (p *pull) meetLog() error {
	place := &p.f.place
	if place.master == p.key {
		return nil
	}
	changed := place.master != 0
	place.master, place.sid, place.sidKnown = p.key, p.hello.SID, true // together: partedAtHello compares both with those of a server
	place.expectNothing()
	p.expect = 0
	place.startAnew()
	if changed && p.servesServices() && p.f.opts.Services != nil { // what the former master did not have yet may be older here
		place.copyAgain(db.ServicesIndex)
	}
	mark, known := place.marks[p.key]
	if changed && !known {
		p.f.opts.Logger.Warn(fmt.Sprintf("the master's log is another than that which was followed up to ts=%d, and goes on from there: a server that "+
			"was not a follower of the former master too may have had updates that do not come", place.position))
	}
	if !changed || !known || mark >= place.position {
		return nil
	}
	p.f.opts.Logger.Info(fmt.Sprintf("another master: its own updates are here up to ts=%d only, and are asked for from there", mark))
	place.position = mark
	return errAgain
}

// greetOriginal asks an original master whether its log reaches back far enough: it would go on without a word at the oldest update it has.
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

// misses tells whether an original server has removed updates newer than a stamp. Its oldest file begins behind the stamp then, and is not the
// first it ever had.
func misses(ctx context.Context, c *client.Client, at ulog.Stamp, sid uint16) (bool, error) {
	files, err := c.UlogList(ctx)
	if err != nil {
		return false, err
	}
	if len(files) == 0 || path.Base(files[0].Path) == "0000000001.ulog" || ulog.Stamp(files[0].Last) <= at {
		return false, nil
	}
	for u, err := range c.Follow(ctx, 0, ^sid, false) { // what it begins with
		return err == nil && !u.Heartbeat && ulog.Stamp(u.TS) > at, err
	}
	return false, nil
}
