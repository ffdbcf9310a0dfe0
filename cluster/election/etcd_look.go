package election

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// etcdKeys are the keys of a cluster; they begin with prefix and end before end.
type etcdKeys struct{ prefix, end, leader, beat, state []byte }

// An etcdLeader is the value of the leader key.
type etcdLeader struct {
	Term uint64 `json:"term"`
	Name string `json:"name"`
	Life string `json:"life"`
	To   string `json:"to,omitempty"` // who may take over at once
}

// An etcdStateBy is the value of the state key.
type etcdStateBy struct {
	State
	By string `json:"by"` // the change: the life of its member, and a random number
}

// An etcdState is the State with the revision of its key.
type etcdState struct {
	State
	mod int64
}

// An etcdLook is what a member saw of the leader, and when it saw it for the first time.
type etcdLook struct {
	leader    etcdLeader
	leaderMod int64
	beatMod   int64
	since     time.Time
}

// mayLeadLocked reports whether this member may take the leadership.
func (e *Etcd) mayLeadLocked() bool {
	m, known := e.state.Member(e.cfg.Name)
	if !known || m.Witness || e.handing {
		return false
	}
	switch l := e.look.leader; {
	case l.Name == e.cfg.Name && l.Life == e.life: // nobody else can have a lease
		return true
	case l.To == e.cfg.Name: // the leader gave its lease up before it wrote this
		return true
	case e.look.leaderMod == 0 && e.state.Version == 1: // nobody has ever led
		return true
	}
	return e.cfg.Clock.Now().Sub(e.look.since) >= e.cfg.Timeout
}

// seeLocked takes over what was read of the keys.
func (e *Etcd) seeLocked(kvs []etcdKV) error {
	now := e.cfg.Clock.Now() // after the reply: what was read was written before
	look, found := etcdLook{since: now}, false
	for _, kv := range kvs {
		var err error
		switch {
		case slices.Equal(kv.Key, e.keys.leader):
			look.leaderMod = kv.Mod
			err = json.Unmarshal(kv.Value, &look.leader)
		case slices.Equal(kv.Key, e.keys.beat):
			look.beatMod = kv.Mod
		case slices.Equal(kv.Key, e.keys.state):
			if found = true; kv.Mod <= e.state.mod {
				continue
			}
			s := etcdState{mod: kv.Mod}
			if err = json.Unmarshal(kv.Value, &s.State); err == nil {
				e.state = s
			}
		}
		if err != nil {
			return fmt.Errorf("election: the key %s of etcd is damaged: %w; restore its value", kv.Key, err)
		}
	}
	if !found && e.state.mod > 0 {
		return fmt.Errorf("election: the key %s has vanished from etcd; restore it", e.keys.state)
	}
	if e.look.since.IsZero() || look.leaderMod != e.look.leaderMod || look.beatMod != e.look.beatMod {
		e.look = look
	}
	e.term = max(e.term, look.leader.Term)
	return nil
}
