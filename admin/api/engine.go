package api

import "net/http"

// Engine is the engine that a server shares with others.
type Engine interface {
	State() EngineState
}

// EngineState describes an engine as one of its servers sees it. Counts are since the start.
type EngineState struct {
	Now         int64         `json:"now"`  // UNIX milliseconds
	Name        string        `json:"name"` // its address, without a password
	Up          bool          `json:"up"`   // it answers
	Queue       int64         `json:"queue"`
	QueueBytes  int64         `json:"queueBytes"`
	QueueLimit  int64         `json:"queueLimit"`
	Connections int           `json:"connections"`
	Lost        uint64        `json:"lost"`
	Undone      uint64        `json:"undone"`
	Unknown     uint64        `json:"unknown"`
	Settled     uint64        `json:"settled"`
	Held        uint64        `json:"held"`
	Refused     uint64        `json:"refused"`
	Groups      EngineSum     `json:"groups"` // their operations
	Keys        EngineSum     `json:"keys"`   // of requests of reads
	Wait        EngineSum     `json:"wait"`   // seconds, and so are the following
	Read        EngineSum     `json:"read"`
	Write       EngineSum     `json:"write"`
	Inside      *EngineInside `json:"inside"` // null: it has not said
}

// EngineSum is a number of values and their sum.
type EngineSum struct {
	Count uint64  `json:"count"`
	Sum   float64 `json:"sum"`
}

// EngineInside is what an engine says of itself. Times are in seconds.
type EngineInside struct {
	Version           string   `json:"version"`
	Durability        string   `json:"durability"`
	Weak              bool     `json:"weak"`
	LogBytes          int64    `json:"logBytes"`
	LogAge            *float64 `json:"logAge"` // null: its log has nothing
	DeadTuples        int64    `json:"deadTuples"`
	OldestTransaction float64  `json:"oldestTransaction"`
	ReplicaLag        *float64 `json:"replicaLag"` // null: not known
}

// engine answers with the state of the engine.
func (a *API) engine(_ http.ResponseWriter, _ *http.Request, s *Sources) (any, error) {
	if s.Engine == nil {
		return off("This server has its databases to itself. Start it with -pldb postgres://USER@HOST/DATABASE to share them with other servers."), nil
	}
	return map[string]any{"state": s.Engine.State()}, nil
}
