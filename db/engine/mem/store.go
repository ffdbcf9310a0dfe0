// Package mem is an engine in memory that several servers of one process share. It is for tests:
// nothing of it lasts.
//
// A Store is what in earnest is a database server; Store.Server returns the engine as one server
// sees it. The Store makes groups as PostgreSQL does, so that tests meet what they would meet
// there: it locks the keys of a group, looks at its conditions, draws a stamp, and commits. Between
// stamp and commit other groups with other keys may overtake it. Others that want its keys wait.
//
// The test decides what goes wrong (Options.Faults): delays, answers that get lost, groups that
// arrive long after their writer has given up, servers that are cut off. Seeded makes such
// decisions at random, the same for the same seed and order of calls.
package mem

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/db/engine"
)

// Options of a Store.
type Options struct {
	Limits engine.Limits // zero: defaults, large ones
	NoLog  bool          // the engine keeps no log
	Lease  time.Duration // for how long a lease lasts without renewal; 0: 10 s
	// Faults is asked before each call what goes wrong with it, by many goroutines at a time; nil:
	// nothing does.
	Faults func(c Call) Fault
}

// Store is the records that servers share.
type Store struct {
	opts Options
	log  log
	id   [16]byte // of the log

	mu      sync.Mutex
	freed   chan struct{} // closed, and made anew, when somebody who waits may go on
	tables  map[uint16]*table
	claimed map[engine.ClaimID]claimed
	ends    map[engine.GroupID]bool // groups that have finished claims
	locks   locks
	lanes   map[uint64]*lane
	writers map[uint64]*Server // whose each lane is
	leases  map[string]*lease
	ears    map[*ear]bool
	// the last ones given out; revision: of records that were given back, whose group has no lane
	lane, revision, transaction uint64
	end                         uint64 // of groups that finish claims; never taken back
}

// lane is what the store knows of a lane: its newest group.
type lane struct {
	seq    uint64 // of the newest group that was made or settled
	made   bool   // it was made
	result engine.Result
	making uint64 // Seq of the group between stamp and commit; 0: none
	hold   *hold  // nil: none
}

// New returns a store without records.
func New(o Options) *Store {
	l := &o.Limits
	if *l == (engine.Limits{}) {
		*l = engine.Limits{Key: 64 << 10, Value: 256 << 20, Changes: 1 << 16, Bytes: 512 << 20, Hold: 5 * time.Second}
	}
	if o.Lease == 0 {
		o.Lease = 10 * time.Second
	}
	s := &Store{
		opts: o, freed: make(chan struct{}),
		tables: map[uint16]*table{}, claimed: map[engine.ClaimID]claimed{}, ends: map[engine.GroupID]bool{},
		locks: locks{keys: map[string]owner{}, dbs: map[uint16]owner{}, used: map[uint16]map[owner]int{}},
		lanes: map[uint64]*lane{}, writers: map[uint64]*Server{}, leases: map[string]*lease{}, ears: map[*ear]bool{},
		revision: engine.FirstRevision,
	}
	s.log.making = map[engine.Stamp]bool{}
	_, _ = rand.Read(s.id[:]) // it never fails
	return s
}

// Server returns the store as a server with this address sees it. The server closes it.
func (s *Store) Server(addr string) *Server {
	v := &Server{store: s, addr: addr}
	v.ctx, v.end = context.WithCancel(context.Background())
	return v
}

// Server is one server's way to the store: an engine.Engine.
type Server struct {
	store *Store
	addr  string
	ctx   context.Context // ends with Close
	end   func()
	work  sync.WaitGroup // goroutines that Close waits for
	epoch atomic.Uint64  // connections made after the first one
	drawn sync.Map       // all numbers of lanes (uint64) that it was given
}

// Epoch implements engine.Engine.
func (v *Server) Epoch() uint64 { return 1 + v.epoch.Load() }

// Reconnect begins an epoch.
func (v *Server) Reconnect() { v.epoch.Add(1) }

var _ engine.Engine = (*Server)(nil)

// await waits, with s.mu unlocked, until something was freed that ready may have waited for, and
// until ready. The caller holds s.mu, also when await returns.
func (s *Store) await(ctx context.Context, ready func() bool) error {
	for !ready() {
		freed := s.freed
		s.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
		}
		s.mu.Lock()
		if ctx.Err() != nil {
			return &engine.Error{Kind: engine.Undone, Err: ctx.Err()}
		}
	}
	return nil
}

// free lets everybody who waits look again.
func (s *Store) free() {
	close(s.freed)
	s.freed = make(chan struct{})
}

// table returns a database, empty where nothing was stored yet.
func (s *Store) table(db uint16) *table {
	t := s.tables[db]
	if t == nil {
		t = &table{records: map[string]engine.Record{}}
		s.tables[db] = t
	}
	return t
}

// laneOf returns what the store knows of a lane.
func (s *Store) laneOf(n uint64) *lane {
	l := s.lanes[n]
	if l == nil {
		l = &lane{}
		s.lanes[n] = l
	}
	return l
}

// Read returns the records of keys.
func (v *Server) Read(ctx context.Context, keys []engine.Key, how engine.Reading) ([]engine.Record, error) {
	return ask(ctx, v, Call{Name: Read, Lane: how.Hold.Lane, Seq: how.Hold.Seq}, func() ([]engine.Record, error) {
		s := v.store
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.writers[how.Hold.Lane] == v && s.opts.Limits.Hold > 0 { // no other group could end it
			if err := s.hold(ctx, keys, how); err != nil {
				return nil, err
			}
		}
		var found []engine.Record
		for _, k := range keys {
			if r, ok := s.table(k.DB).records[string(k.Key)]; ok {
				found = append(found, small(r, false, how.Most))
			}
		}
		return found, nil
	})
}

// Scan returns records of one database.
func (v *Server) Scan(ctx context.Context, scan engine.Scan) (engine.Page, error) {
	return ask(ctx, v, Call{Name: Scan}, func() (engine.Page, error) {
		v.store.mu.Lock()
		defer v.store.mu.Unlock()
		return v.store.table(scan.DB).page(scan), nil
	})
}

// Lane returns a number that no lane has had.
func (v *Server) Lane(ctx context.Context) (uint64, error) {
	return ask(ctx, v, Call{Name: Lane}, func() (uint64, error) {
		v.store.mu.Lock()
		defer v.store.mu.Unlock()
		for {
			v.store.lane++
			if _, before := v.drawn.LoadOrStore(v.store.lane, true); !before {
				v.store.writers[v.store.lane] = v
				return v.store.lane, nil
			}
		}
	})
}

// Sweep removes records that have expired.
func (v *Server) Sweep(ctx context.Context, db uint16, before int64, limit int) (int, error) {
	return ask(ctx, v, Call{Name: Sweep}, func() (int, error) {
		s := v.store
		s.mu.Lock()
		defer s.mu.Unlock()
		t, removed := s.table(db), 0
		for _, key := range slices.Clone(t.order) {
			one := engine.Key{DB: db, Key: []byte(key)}
			if removed < limit && t.records[key].XT < before && s.locks.free(owner{}, []engine.Key{one}) {
				t.remove(key)
				removed++
			}
		}
		return removed, nil
	})
}

// Count returns the number of records and about the size of their keys and values.
func (v *Server) Count(ctx context.Context, db uint16) (records, bytes int64, err error) {
	size, err := ask(ctx, v, Call{Name: Count}, func() ([2]int64, error) {
		v.store.mu.Lock()
		defer v.store.mu.Unlock()
		t := v.store.table(db)
		return [2]int64{int64(len(t.order)), t.bytes}, nil
	})
	return size[0], size[1], err
}

// Limits returns what the store can do.
func (v *Server) Limits() engine.Limits { return v.store.opts.Limits }

// Now returns the time by which records expire.
func (v *Server) Now() int64 { return time.Now().Unix() }

// Clock returns the same time.
func (v *Server) Clock() time.Time { return time.Now() }

// Close ends the server's leases and waits for its goroutines.
func (v *Server) Close() error {
	v.end()
	v.work.Wait()
	return nil
}
