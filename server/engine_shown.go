package server

import (
	"context"
	"sync"
	"time"

	"gotycoon/admin/api"
	"gotycoon/admin/status"
	"gotycoon/db"
	"gotycoon/internal/metrics"
)

const (
	engineAsk   = time.Second // for what the engine says of itself
	engineStale = time.Second // after which it is asked again
)

// engineShown is what a server shows of its engine, to people and to those who measure.
type engineShown struct {
	catalog *db.Catalog
	shared  *sharedEngine

	// The engine is asked by one of those who look at a time, and not more than once a second.
	mu     sync.Mutex
	asked  time.Time
	inside *status.EngineInside // nil: it has not said
	conns  int
}

// newEngineShown returns what a server shows of its engine, nil where it has none.
func newEngineShown(c *db.Catalog, s *sharedEngine) *engineShown {
	if s == nil {
		return nil
	}
	return &engineShown{catalog: c, shared: s}
}

// figures are the metrics of the engine.
func (e *engineShown) figures() status.Engine {
	g := e.catalog.Groups().Stats()
	inside, conns := e.look(g.Away)
	term, held := e.catalog.Lease()
	return status.Engine{
		Up: !g.Away, Queue: g.Queue, QueueBytes: g.QueueBytes, QueueLimit: g.QueueLimit, Connections: conns,
		Lost: g.Lost, Undone: g.Undone, Unknown: g.Unknown, SettledMade: g.SettledMade, SettledUndone: g.SettledUndone, Held: g.Held, Refused: g.Refused,
		GroupOperations: g.GroupOperations, GroupBytes: g.GroupBytes, Swept: e.swept(), ReadKeys: g.ReadKeys, Wait: g.Wait, Read: g.Read, Write: g.Write,
		Lease: status.EngineLease{Name: term.Name, Term: term.Number, Held: held}, Signals: e.signals(), Inside: inside,
	}
}

func (e *engineShown) swept() (records int64) {
	for _, d := range e.catalog.All() {
		records += d.Measure().Expired
	}
	return records
}

func (e *engineShown) signals() *status.EngineSignals {
	if e.shared.relay == nil {
		return nil
	}
	s := e.shared.relay.Stats()
	return &status.EngineSignals{Listening: s.Listening, Sent: s.Sent, Woken: s.Woken, Dropped: s.Dropped}
}

// look asks the engine what it says of itself, unless it is away, or somebody has just asked.
func (e *engineShown) look(away bool) (inside *status.EngineInside, conns int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !away && time.Since(e.asked) < engineStale {
		return e.inside, e.conns
	}
	e.inside, e.conns = nil, e.shared.Connections()
	if away {
		return e.inside, e.conns
	}
	ctx, cancel := context.WithTimeout(context.Background(), engineAsk)
	defer cancel()
	f, err := e.shared.Figures(ctx)
	e.asked = time.Now()
	if err == nil {
		e.inside = &status.EngineInside{
			Version: f.Version, Durability: f.Durability, Weak: f.Weak, LogBytes: f.LogBytes, LogAge: f.LogAge, LogKeep: f.LogKeep, HorizonAge: f.HorizonAge, DeadTuples: f.DeadTuples,
			OldestTransaction: f.OldestTransaction, ReplicaLag: f.ReplicaLag,
		}
	}
	return e.inside, e.conns
}

// feature is what the report has of the engine, among the features of the program: further rows
// would be new to clients that work on a server's own databases and on an engine's alike. The state
// of the engine is in metrics, alarms and the console.
func (e *engineShown) feature() string {
	if e == nil {
		return ""
	}
	return "(engine " + e.shared.name + ")"
}

// State implements api.Engine.
func (e *engineShown) State() api.EngineState {
	f := e.figures()
	sum := func(h *metrics.Histogram, scale float64) api.EngineSum {
		count, total, _ := h.Snapshot(scale)
		return api.EngineSum{Count: count, Sum: total}
	}
	s := api.EngineState{
		Now: time.Now().UnixMilli(), Name: e.shared.name, Up: f.Up, Queue: f.Queue, QueueBytes: f.QueueBytes, QueueLimit: f.QueueLimit, Connections: f.Connections,
		Lost: f.Lost, Undone: f.Undone, Unknown: f.Unknown, Settled: f.SettledMade + f.SettledUndone, Held: f.Held, Refused: f.Refused,
		Groups: sum(f.GroupOperations, 1), Keys: sum(f.ReadKeys, 1), Wait: sum(f.Wait, 1e-9), Read: sum(f.Read, 1e-9), Write: sum(f.Write, 1e-9),
	}
	if in := f.Inside; in != nil {
		s.Inside = &api.EngineInside{
			Version: in.Version, Durability: in.Durability, Weak: in.Weak, LogBytes: in.LogBytes, LogAge: secondsOf(in.LogAge), DeadTuples: in.DeadTuples,
			OldestTransaction: in.OldestTransaction.Seconds(), ReplicaLag: secondsOf(in.ReplicaLag),
		}
	}
	return s
}

// secondsOf returns a duration as JSON has it, nil where it is not known.
func secondsOf(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(d.Seconds())
}
