package api

import (
	"net/http"
	"time"

	"gotycoon/admin/status"
)

// masterRow describes the replication from a master.
type masterRow struct {
	Address   string          `json:"address"`
	Trouble   string          `json:"trouble"`
	Copy      string          `json:"copy"`
	Following bool            `json:"following"`
	State     string          `json:"state"`    // empty: not known
	Seconds   *float64        `json:"seconds"`  // behind the master; null: not known
	Records   *int64          `json:"records"`  // behind the master; null: not known
	Position  int64           `json:"position"` // UNIX milliseconds
	Contact   int64           `json:"contact"`  // UNIX milliseconds; 0: not known
	Applied   *status.Applied `json:"applied"`
}

// replicaRow is a follower of this server.
type replicaRow struct {
	ServerID string   `json:"serverId"`
	Peer     string   `json:"peer"`
	State    string   `json:"state"`
	Seconds  *float64 `json:"seconds"`
	Records  *int64   `json:"records"`
	Contact  int64    `json:"contact"`
}

// replication answers with this server, its master and its followers.
func (a *API) replication(_ http.ResponseWriter, _ *http.Request, s *Sources) (any, error) {
	answer := map[string]any{"identity": s.Identity, "master": nil, "masterOff": "", "replicas": nil, "replicasOff": ""}
	if s.Follower == nil {
		answer["masterOff"] = "This server follows no master. Start it with -mhost HOST, -mport PORT and -rts FILE to have it follow one."
	} else {
		answer["master"] = s.master()
	}
	switch {
	case s.Catalog.Log() == nil:
		answer["replicasOff"] = "Nobody can follow this server: it has no update log. Start it with -ulog DIR and -sid NUMBER."
	case s.Replicas == nil:
		answer["replicasOff"] = "Which servers follow this one is not known here."
	default:
		answer["replicas"] = s.replicas()
	}
	return answer, nil
}

func (s *Sources) master() masterRow {
	f := s.Follower()
	row := masterRow{Following: f.Following, State: f.State, Position: millis(f.Position), Contact: millis(f.Contact), Applied: f.Applied}
	if s.Master != nil {
		m := s.Master()
		row.Address, row.Trouble, row.Copy = m.Address, m.Trouble, m.Copy
	}
	if f.Following {
		row.Seconds, row.Records = known(f.Seconds), known(f.Records)
	}
	return row
}

func (s *Sources) replicas() []replicaRow {
	rows := []replicaRow{}
	for _, r := range s.Replicas() {
		rows = append(rows, replicaRow{
			ServerID: r.SID, Peer: r.Peer, State: r.State, Seconds: known(r.Seconds), Records: known(r.Records), Contact: millis(r.Contact),
		})
	}
	return rows
}

// known returns nil for a negative number, which stands for an unknown one.
func known[T int64 | float64](n T) *T {
	if n < 0 {
		return nil
	}
	return &n
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
