package election

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Propose implements Elector.
func (e *Etcd) Propose(ctx context.Context, term uint64, change func(State) (State, error)) error {
	return e.commit(ctx, term, func(before State) (State, error) { return keepMembers(before, change) })
}

// AddMember implements Elector. The member counts at once: the votes are etcd's.
func (e *Etcd) AddMember(ctx context.Context, term uint64, m Member) error {
	m.ID, m.Joining = 0, false
	return e.commit(ctx, term, func(s State) (State, error) { return s.with(m) })
}

// RemoveMember implements Elector.
func (e *Etcd) RemoveMember(ctx context.Context, term uint64, name string) error {
	if name == e.cfg.Name {
		return errRemoveSelf
	}
	return e.commit(ctx, term, func(s State) (State, error) { return s.without(name) })
}

// commit commits a change.
func (e *Etcd) commit(ctx context.Context, term uint64, change func(State) (State, error)) error {
	if err := e.turn.take(ctx); err != nil {
		return err
	}
	defer e.turn.pass()
	for {
		e.mu.Lock()
		leads, before, mine := e.leads && e.term == term, e.state, e.mine
		e.mu.Unlock()
		if !leads {
			return ErrNotLeading
		}
		after, err := change(before.State.clone())
		if err != nil {
			return err
		}
		text, err := json.Marshal(etcdStateBy{after.next(before.State), e.life + "-" + strconv.FormatUint(randomNumber(), 36)})
		if err != nil {
			return err
		}
		if err := e.write(ctx, mine, before.mod, text); err != errSuperseded {
			return err
		}
	}
}

// write writes the State in place of the one that had the revision before. A transaction whose
// answer is lost is sent again until it is known what became of it: it can take effect only once.
func (e *Etcd) write(ctx context.Context, mine, before int64, text []byte) error {
	t := etcdTxn{
		Compare: []etcdCompare{equalMod(e.keys.leader, mine), equalMod(e.keys.state, before)},
		Success: append([]etcdOp{put(e.keys.state, text)}, e.wholeRange()...),
		Failure: e.wholeRange(),
	}
	for unknown := false; ; unknown = true {
		reply, err := e.txn(ctx, t)
		if err == nil {
			return e.written(reply, mine, text, unknown || reply.lost)
		}
		if err := pause(ctx, e.cfg.Timeout/looksPerTimeout); err != nil {
			return fmt.Errorf("%w: %w", ErrUnknown, err)
		}
	}
}

// written finds out from the answer of etcd whether the State is the one that was to be written.
// unknown tells that the answers to earlier tries were lost. No other change has the same text,
// even if it makes the same State of the one before.
func (e *Etcd) written(reply *etcdTxnReply, mine int64, text []byte, unknown bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.seeLocked(reply.kvs()); err != nil {
		return err
	}
	if e.mine == mine && e.look.leaderMod != mine { // else this member leads again, in a later term
		e.leads = false
	}
	e.showLocked()
	switch {
	case reply.Succeeded || reply.has(e.keys.state, text): // e.state may be newer than the answer
		return nil
	case e.look.leaderMod == mine:
		return errSuperseded
	case unknown:
		return ErrUnknown
	}
	return ErrNotLeading
}

// has reports whether a transaction has read this value of a key.
func (r *etcdTxnReply) has(key, value []byte) bool {
	return slices.ContainsFunc(r.kvs(), func(kv etcdKV) bool { return bytes.Equal(kv.Key, key) && bytes.Equal(kv.Value, value) })
}

// pause waits, unless the context ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Transfer implements Elector. The leader key names who may take over at once; everybody else waits
// as long as for a leader that died.
func (e *Etcd) Transfer(ctx context.Context, to string) error {
	if err := e.turn.take(ctx); err != nil {
		return err
	}
	defer e.turn.pass()
	term, mine, err := e.beginTransfer(to)
	if err != nil {
		return err
	}
	defer e.endTransfer()
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	if err := e.handOver(ctx, term, mine, to); err != nil {
		return fmt.Errorf("election: the leadership cannot be handed to %s: %w", to, err)
	}
	return e.awaitLeader(ctx, to, term)
}

// Hears implements Elector: a transfer by etcd asks nothing of the other member.
func (e *Etcd) Hears(string) bool { return true }

// handOver writes who may take over. What was written when the answer is lost is written once: the
// second try finds another revision.
func (e *Etcd) handOver(ctx context.Context, term uint64, mine int64, to string) error {
	text, err := json.Marshal(etcdLeader{Term: term, Name: e.cfg.Name, Life: e.life, To: to})
	if err != nil {
		return err
	}
	for {
		_, err := e.txn(ctx, etcdTxn{
			Compare: []etcdCompare{equalMod(e.keys.leader, mine)},
			Success: []etcdOp{put(e.keys.leader, text)},
			Failure: e.wholeRange(),
		})
		if err == nil || pause(ctx, e.cfg.Timeout/looksPerTimeout) != nil {
			return err
		}
	}
}

// beginTransfer gives up the lease.
func (e *Etcd) beginTransfer(to string) (uint64, int64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.leads {
		return 0, 0, ErrNotLeading
	}
	if _, err := e.state.successor(to, e.cfg.Name); err != nil {
		return 0, 0, err
	}
	e.leads, e.handing, e.lease = false, true, time.Time{}
	e.showLocked()
	return e.term, e.mine, nil
}

// endTransfer lets this member lead again, in a later term, if the other one has not taken over.
func (e *Etcd) endTransfer() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.handing = false
}
