package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// # Slow and hung disks
//
// A disk can hang for minutes: a controller resets itself, a network volume loses its server. The
// network is fine meanwhile, so the elector renews the lease, and the cluster would stand still. So
// a primary hands over when its update log has made no progress for Options.DiskTimeout although
// updates wait for it, and another member can take over. It hands over also when its disk hangs at
// the beginning of its term, and at once when the server stops (Resign, Close).
//
//	0 s      an update is appended; its write, or its fsync, does not return
//	10 s     the other members are asked: enough of them are there for a takeover
//	         step down: the epoch ends, the clients are disconnected
//	         transfer: the other member seals those that answer, and begins its term
//	60 s     the disk goes on: the update is in the log now. Nobody is told of it, since its
//	         connection is of an epoch that is over. This member is sealed, puts the update aside,
//	         and becomes a copy, as after any failover
//
// An update that is not on this member's disk was not sent to followers either, so it was not
// confirmed. The order of the events does not matter: whether the disk goes on before or after the
// step-down, the transfer, or the seal, an answer needs the epoch in which its connection began,
// and the epoch ends first. If nobody can take over, nothing changes: the updates are answered when
// the disk goes on, if their clients are still there.
//
// A slow disk is no hung one: every write or fsync that returns begins the time anew. The time is
// long compared with what a busy disk needs for one fsync, since a failover has a price: the former
// primary may have to copy its databases.
//
// What waits for the disk waits without Node.mu (see Data and Node.work): a member whose disk hangs
// steps down, answers calls of other members, and tells its state.

// shownStall is for how long the disk has to do nothing before the status says so.
const shownStall = time.Second

// watch ends what this member does as the primary as soon as it must, whatever run waits for.
func (n *Node) watch() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for n.ctx.Err() == nil {
		changed := n.elector.Changed()
		term, leads := n.elector.Leading()
		n.mu.Lock()
		n.heed(term, leads)
		n.mu.Unlock()
		n.heedDisk(time.Now(), leads)
		select {
		case <-changed:
		case <-tick.C:
		case <-n.ctx.Done():
		}
	}
}

// heed steps down when the elector does not say any more that this member leads its term. mu is
// held.
func (n *Node) heed(term uint64, leads bool) {
	if n.active() && (!leads || term != n.term) {
		n.stepDown(errors.New("another member may lead the cluster now"))
	}
}

// active reports whether this member is the primary, or is about to be. mu is held.
func (n *Node) active() bool {
	return n.role == Leading || n.role == Opening || n.role == Draining
}

// heedDisk hands over when the disk hangs. Only watch calls it.
func (n *Node) heedDisk(now time.Time, leads bool) {
	stalled, begins := n.disk.look(now, n.opts.Data.Disk()), n.begin.look(now, n.working())
	if leads {
		stalled = max(stalled, begins)
	}
	former, limit := time.Duration(n.stalled.Swap(int64(stalled))), n.opts.DiskTimeout
	switch {
	case former < limit && stalled >= limit:
		n.opts.Logger.Error(fmt.Sprintf("cluster: the disk of this member has done nothing for %v although updates wait for it", limit))
	case former >= limit && stalled < limit:
		n.opts.Logger.Warn("cluster: the disk of this member works again")
	}
	if leads && stalled >= limit && !n.giving.Swap(true) {
		n.done.Go(func() {
			defer n.giving.Store(false)
			why := fmt.Errorf("its disk has done nothing for %.1f s", stalled.Seconds())
			if err := n.handOff(why, anyMember, func() bool { return n.Stalled() >= n.opts.DiskTimeout }); err != nil {
				n.tell(err)
				select { // the others are asked once in so long
				case <-time.After(sealTimeout):
				case <-n.ctx.Done():
				}
			}
		})
	}
}

// Stalled returns for how long this member's disk has done nothing although somebody waits for it.
func (n *Node) Stalled() time.Duration { return time.Duration(n.stalled.Load()) }

// anyMember is a successor for handOff whatever it says of itself.
func anyMember(*Status) bool { return true }

// handOff hands over to another member because this one cannot be the primary, if another one that
// fits can take over, and still, which is asked under mu, says that this member should. It has no
// primary's duties any more when it begins the transfer, as always. The error says why nothing has
// changed.
func (n *Node) handOff(why error, fits func(*Status) bool, still func() bool) error {
	ctx, cancel := context.WithTimeout(n.ctx, sealTimeout)
	defer cancel()
	to, err := n.successor(ctx, fits)
	if err != nil {
		return fmt.Errorf("this member cannot be the primary (%w), and it cannot hand over: %w", why, err)
	}
	term, leads := n.elector.Leading()
	n.mu.Lock()
	if !leads || n.handing || n.active() && n.term != term || !still() {
		n.mu.Unlock()
		return nil // it goes on, or another one leads
	}
	n.stepDown(fmt.Errorf("%w, and %s takes over", why, to))
	n.handing = true
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.handing = false
	}()
	ctx, cancel = context.WithTimeout(n.ctx, transferTimeout)
	defer cancel()
	if err := n.elector.Transfer(ctx, to); err != nil {
		n.tell(fmt.Errorf("handing over to %s, since this member cannot be the primary (%w): %w", to, why, err))
	}
	return nil
}

// successor returns the member that is to take over. There is none unless enough members can be
// sealed: they must have whatever was acknowledged. This one can if its disk works.
func (n *Node) successor(ctx context.Context, fits func(*Status) bool) (name string, err error) {
	st := n.elector.State()
	all := n.surveyOthers(ctx)
	var best *Status
	here, need := 0, withData(st)-st.Required
	if n.Stalled() == 0 {
		need--
	}
	for _, m := range st.Members {
		s, ok := all[m.Name]
		if !ok || m.Name == n.opts.Name || m.Witness || m.Joining || s.Has.Incomplete != "" || s.Stalled > 0 {
			continue
		}
		here++
		if !s.Has.Leaving && fits(&s) && (best == nil || s.fitter(best)) {
			best = &s
		}
	}
	if best == nil && here >= max(need, 1) {
		return "", errors.New("no other member is any better")
	}
	if best == nil || here < need || st.Term == 0 {
		return "", fmt.Errorf("%d other members with data are there whose disks work, and %d must be", here, max(need, 1))
	}
	return best.Name, nil
}

// fitter reports whether one member is likely to have more than another one. If it has not, it
// hands on.
func (s *Status) fitter(than *Status) bool {
	if s.Unready != than.Unready {
		return than.Unready
	}
	if (s.Role == Following) != (than.Role == Following) {
		return s.Role == Following
	}
	return s.Has.Lag >= 0 && (than.Has.Lag < 0 || s.Has.Lag < than.Has.Lag)
}
