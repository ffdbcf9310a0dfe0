package cluster

import (
	"context"
	"fmt"
	"time"
)

// A primary whose services cannot take over serves records and nothing else: no quotas, no
// sequences, no fencing tokens. So it stays Opening and tries again, and when that does not help,
// another member is to lead whose disk may be well. That one may fail too, since a damaged record
// is damaged on all members. Therefore each member hands over once only, and only to one that has
// not failed (Status.Unready); the last one serves the records alone, and goes on trying.

const (
	// readyFirst is the first pause between two tries to get ready, readyMost the longest.
	readyFirst = 20 * time.Millisecond
	readyMost  = 2 * time.Second
	// mostUnready is how often a member tries in vain before it hands over.
	mostUnready = 5
)

// serve lets clients update as soon as everything is ready, unless this member ceases to be the
// primary of the term before. tried is closed after the first try; nil: nobody waits for it.
func (n *Node) serve(ctx context.Context, term uint64, tried chan<- struct{}) {
	pause := readyFirst
	for failures := 1; ; failures++ {
		err := n.getReady(ctx, term)
		if failures == 1 && tried != nil {
			close(tried)
		}
		if err == nil || !n.notReady(term, failures, err) {
			return
		}
		if failures >= mostUnready {
			ready := func(s *Status) bool { return !s.Unready }
			if n.handOff(fmt.Errorf("its services cannot take over: %w", err), ready, func() bool { return n.opens(term) }) != nil {
				n.serveRecords(term, err)
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, readyMost)
	}
}

// getReady gets everything ready, and then lets clients update.
func (n *Node) getReady(ctx context.Context, term uint64) error {
	if err := n.beginWork(ctx); err != nil {
		return err // ctx has ended
	}
	defer n.endWork()
	n.mu.Lock()
	goes := n.opens(term)
	n.mu.Unlock()
	if !goes {
		return nil
	}
	if err := n.opts.Data.Ready(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.opens(term) {
		return nil
	}
	if n.unready {
		n.unready, n.trouble = false, ""
		n.opts.Logger.Info("cluster: the services of this member have taken over")
	}
	n.letIn(term)
	return nil
}

// serveRecords lets clients update though the services have not taken over.
func (n *Node) serveRecords(term uint64, why error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.opens(term) {
		return
	}
	n.letIn(term)
	n.trouble = fmt.Sprintf("the services of %s cannot take over, nor those of another member, so %[1]s serves records alone: %[2]v", n.opts.Name, why)
	n.tellOnce(n.trouble)
}

// letIn lets clients update, and those of the services that are ready. mu is held.
func (n *Node) letIn(term uint64) {
	n.led.Store(term)
	n.opts.Data.Open()
	n.become(Leading, term)
}

// opens reports whether this member is about to be the primary of a term, or is it without its
// services. mu is held.
func (n *Node) opens(term uint64) bool {
	return n.term == term && (n.role == Opening || n.role == Leading && n.unready)
}

// notReady notes why this member does not serve clients yet, or not all of them, and reports
// whether it is still to do so.
func (n *Node) notReady(term uint64, failures int, why error) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.opens(term) {
		return false
	}
	n.unready = true
	if n.role == Opening {
		n.trouble = fmt.Sprintf("the services of %s cannot take over (tries: %d), so %[1]s serves no clients: %[3]v", n.opts.Name, failures, why)
		n.tellOnce("this member cannot be the primary: " + n.trouble)
	}
	return true
}

// resume has this member go on as the primary after a hand-over that came to nothing. It returns
// when clients are served again, or when that takes longer.
func (n *Node) resume(term uint64) {
	n.mu.Lock()
	if n.role != Draining || n.term != term {
		n.mu.Unlock()
		return
	}
	n.become(Opening, term)
	n.trouble = "a hand-over to another member came to nothing, and this member is about to go on"
	tried := make(chan struct{})
	ctx := n.tenure
	n.done.Go(func() { n.serve(ctx, term, tried) })
	n.mu.Unlock()
	short, cancel := context.WithTimeout(ctx, handOver)
	defer cancel()
	select {
	case <-tried:
	case <-short.Done(): // the try may wait for the disk
	}
}
