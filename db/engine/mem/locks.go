package mem

import (
	"context"
	"encoding/binary"
	"time"

	"gotycoon/db/engine"
)

// owner is who has locked something: a group, or a transaction, which has no lane. The zero value
// is nobody.
type owner struct{ lane, seq uint64 }

func ownerOf(id engine.GroupID) owner { return owner{id.Lane, id.Seq} }

// locks are what groups between stamp and commit, holds and transactions have locked.
type locks struct {
	keys map[string]owner
	dbs  map[uint16]owner // whole databases
	used map[uint16]map[owner]int
}

// hold is what Read has locked for a lane.
type hold struct {
	by    owner
	keys  []engine.Key
	timer *time.Timer
}

// name returns a key as a map has it.
func name(k engine.Key) string {
	return string(append(binary.BigEndian.AppendUint16(nil, k.DB), k.Key...))
}

// free reports whether nobody but o has locked one of the keys or their databases.
func (l *locks) free(o owner, keys []engine.Key) bool {
	for _, k := range keys {
		if by, locked := l.keys[name(k)]; locked && by != o {
			return false
		}
		if by, locked := l.dbs[k.DB]; locked && by != o {
			return false
		}
	}
	return true
}

// alone returns which of the keys' databases somebody else has alone.
func (l *locks) alone(o owner, keys []engine.Key) (db uint16, locked bool) {
	for _, k := range keys {
		if by, locked := l.dbs[k.DB]; locked && by != o {
			return k.DB, true
		}
	}
	return 0, false
}

// unused reports whether nobody but o has locked a database or a key of it.
func (l *locks) unused(o owner, db uint16) bool {
	if by, locked := l.dbs[db]; locked && by != o {
		return false
	}
	for by := range l.used[db] {
		if by != o {
			return false
		}
	}
	return true
}

// take locks keys that are free for o.
func (l *locks) take(o owner, keys []engine.Key) {
	for _, k := range keys {
		if _, locked := l.keys[name(k)]; locked {
			continue
		}
		l.keys[name(k)] = o
		if l.used[k.DB] == nil {
			l.used[k.DB] = map[owner]int{}
		}
		l.used[k.DB][o]++
	}
}

// give unlocks those of the keys that o has locked.
func (l *locks) give(o owner, keys []engine.Key) {
	for _, k := range keys {
		if l.keys[name(k)] != o {
			continue
		}
		delete(l.keys, name(k))
		if l.used[k.DB][o]--; l.used[k.DB][o] == 0 {
			delete(l.used[k.DB], o)
		}
	}
}

// hold locks keys for a group that its lane is about to write. The caller holds s.mu.
func (s *Store) hold(ctx context.Context, keys []engine.Key, how engine.Reading) error {
	l, o := s.laneOf(how.Hold.Lane), ownerOf(how.Hold)
	s.endHold(l)
	if db, locked := s.locks.alone(o, keys); locked && how.NoWait {
		return engine.Locked(db)
	}
	if err := s.await(ctx, func() bool { return s.locks.free(o, keys) }); err != nil {
		return err
	}
	h := &hold{by: o}
	for _, k := range keys {
		h.keys = append(h.keys, engine.Key{DB: k.DB, Key: append([]byte{}, k.Key...)})
	}
	s.locks.take(o, h.keys)
	h.timer = time.AfterFunc(s.opts.Limits.Hold, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.hold == h && l.making == 0 {
			s.endHold(l)
		}
	})
	l.hold = h
	return nil
}

// endHold unlocks what a lane holds. The caller holds s.mu.
func (s *Store) endHold(l *lane) {
	if l.hold == nil {
		return
	}
	l.hold.timer.Stop()
	s.locks.give(l.hold.by, l.hold.keys)
	l.hold = nil
	s.free()
}
