package election

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Etcd is the Elector that uses an etcd. See Etcd in doc.go for its keys and rules.
type Etcd struct {
	*board
	cfg    EtcdConfig
	client *etcdClient
	keys   etcdKeys
	life   string // of this start; it tells the records of this process from those of an earlier one
	turn   turn

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	done chan struct{} // closed when run has ended

	mu      sync.Mutex // guards everything below
	term    uint64     // the newest that is known
	leads   bool
	handing bool  // a transfer is under way: this member must not take the leadership back
	mine    int64 // the leader key's revision while this member leads
	lease   time.Time
	state   etcdState
	look    etcdLook
	ended   error
}

// OpenEtcd starts a member. It does not wait for etcd: as long as etcd does not answer nobody
// leads.
func OpenEtcd(cfg EtcdConfig) (*Etcd, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	prefix := cfg.Prefix + "/" + cfg.Cluster + "/"
	e := &Etcd{
		board: newBoard(cfg.Clock), cfg: cfg, turn: newTurn(), done: make(chan struct{}),
		life: strconv.FormatUint(randomNumber(), 36),
		client: &etcdClient{
			endpoints: cfg.Endpoints, user: cfg.User, password: cfg.Password,
			timeout: cfg.Timeout / callsPerTimeout, http: http.Client{Transport: cfg.transport},
		},
		keys: etcdKeys{
			prefix: []byte(prefix), end: []byte(prefix[:len(prefix)-1] + "0"), // the byte after "/"
			leader: []byte(prefix + "leader"), beat: []byte(prefix + "beat"), state: []byte(prefix + "state"),
		},
	}
	e.ctx, e.stop = context.WithCancel(context.Background())
	go e.run()
	return e, nil
}

// Close implements Elector.
func (e *Etcd) Close() error {
	e.stop()
	<-e.done
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leads, e.ended = false, ErrClosed
	e.showLocked()
	e.client.http.CloseIdleConnections()
	return nil
}

// run beats while this member leads, and looks at the leader while it does not.
func (e *Etcd) run() {
	defer close(e.done)
	failing := false
	for {
		begun := time.Now()
		err := e.round()
		if failed := err != nil && e.ctx.Err() == nil; failed != failing {
			failing = failed
			e.cfg.Log.Warn("election: etcd "+map[bool]string{true: "does not answer", false: "answers again"}[failed],
				"endpoints", e.cfg.Endpoints, "error", err)
		}
		wait := e.cfg.Timeout / looksPerTimeout
		if _, leads := e.Leading(); leads {
			wait = e.cfg.Timeout/beatsPerTimeout - time.Since(begun)
		}
		timer := time.NewTimer(max(wait, e.cfg.Timeout/100))
		select {
		case <-timer.C:
		case <-e.ctx.Done():
			timer.Stop()
			return
		}
	}
}

func (e *Etcd) round() error {
	e.mu.Lock()
	leads, mine, term := e.leads, e.mine, e.term
	e.mu.Unlock()
	if leads {
		return e.beat(term, mine)
	}
	return e.watch()
}

// beat shows the others that the leader is alive, and renews the lease.
func (e *Etcd) beat(term uint64, mine int64) error {
	t0 := e.cfg.Clock.Now()
	reply, err := e.txn(e.ctx, etcdTxn{
		Compare: []etcdCompare{equalMod(e.keys.leader, mine)},
		Success: []etcdOp{put(e.keys.beat, []byte(e.cfg.Name))},
		Failure: e.wholeRange(),
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.leads || e.term != term {
		return err // a transfer came first
	}
	switch {
	case err != nil:
		if !e.cfg.Clock.Now().Before(e.lease) {
			e.leads = false
		}
	case reply.Succeeded:
		e.lease = later(e.lease, t0.Add(e.leaseTime()))
	default:
		e.leads = false
		err = e.seeLocked(reply.kvs())
	}
	e.showLocked()
	return err
}

// leaseTime is D in doc.go.
func (e *Etcd) leaseTime() time.Duration { return e.cfg.Timeout / 10 * 9 }

// watch looks at the leader, and takes over if nobody leads. What it sees may be old; the
// transaction that takes over finds out.
func (e *Etcd) watch() error {
	var reply etcdRangeReply
	_, err := e.client.call(e.ctx, "/v3/kv/range",
		etcdRange{Key: e.keys.prefix, End: e.keys.end, Serializable: true}, &reply)
	e.mu.Lock()
	if err == nil {
		err = e.seeLocked(reply.KVs)
	}
	e.showLocked()
	begin := err == nil && e.state.mod == 0 && len(e.cfg.Members) > 0
	campaign := err == nil && e.mayLeadLocked()
	look, term := e.look, max(e.look.leader.Term, e.state.Term)+1
	e.mu.Unlock()
	switch {
	case begin:
		return e.begin()
	case campaign:
		return e.takeOver(look, term)
	}
	return err
}

// begin writes the State of a new cluster, unless another member has.
func (e *Etcd) begin() error {
	text, err := json.Marshal(State{Members: e.cfg.Members, Version: 1})
	if err != nil {
		return err
	}
	reply, err := e.txn(e.ctx, etcdTxn{
		Compare: []etcdCompare{equalMod(e.keys.state, 0)},
		Success: append([]etcdOp{put(e.keys.state, text)}, e.wholeRange()...),
		Failure: e.wholeRange(),
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seeLocked(reply.kvs())
}

// takeOver begins a term, if nothing has changed since this member looked.
func (e *Etcd) takeOver(look etcdLook, term uint64) error {
	text, err := json.Marshal(etcdLeader{Term: term, Name: e.cfg.Name, Life: e.life})
	if err != nil {
		return err
	}
	t0 := e.cfg.Clock.Now()
	reply, err := e.txn(e.ctx, etcdTxn{
		Compare: []etcdCompare{equalMod(e.keys.leader, look.leaderMod), equalMod(e.keys.beat, look.beatMod)},
		Success: append([]etcdOp{put(e.keys.leader, text), put(e.keys.beat, []byte(e.cfg.Name))}, e.wholeRange()...),
		Failure: e.wholeRange(),
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.seeLocked(reply.kvs()); err != nil {
		return err
	}
	if reply.Succeeded {
		e.leads, e.mine, e.term = true, e.look.leaderMod, term
		e.lease = t0.Add(e.leaseTime())
	}
	e.showLocked()
	return nil
}

// showLocked shows the present.
func (e *Etcd) showLocked() {
	v := view{leads: e.leads, term: e.term, state: e.state.State, err: e.ended}
	switch {
	case e.leads:
		v.leader, v.lease = e.cfg.Name, e.lease
	case e.look.leader.To == "" && e.look.leader.Name != e.cfg.Name &&
		e.look.leader.Term == e.term && e.cfg.Clock.Now().Sub(e.look.since) < e.cfg.Timeout:
		v.leader = e.look.leader.Name
	}
	e.show(v)
}

// wholeRange reads all keys of the cluster.
func (e *Etcd) wholeRange() []etcdOp {
	return []etcdOp{{Range: &etcdRange{Key: e.keys.prefix, End: e.keys.end}}}
}

func (e *Etcd) txn(ctx context.Context, t etcdTxn) (*etcdTxnReply, error) {
	reply := &etcdTxnReply{}
	lost, err := e.client.call(ctx, "/v3/kv/txn", t, reply)
	reply.lost = lost
	return reply, err
}

// kvs returns what the last range of a transaction has read.
func (r *etcdTxnReply) kvs() []etcdKV {
	for _, op := range slices.Backward(r.Responses) {
		if op.Range != nil {
			return op.Range.KVs
		}
	}
	return nil
}
