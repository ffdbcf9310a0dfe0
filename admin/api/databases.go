package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"gotycoon/db"
	"gotycoon/db/expr"
)

// databaseRow is a database as the console shows it.
type databaseRow struct {
	Index      int      `json:"index"`
	Name       string   `json:"name"`
	Path       string   `json:"path"`
	Kind       string   `json:"kind"`
	Services   bool     `json:"services"` // the services' database
	OnDisk     bool     `json:"onDisk"`
	Ordered    bool     `json:"ordered"`
	Persistent bool     `json:"persistent"` // its records do not expire
	ReadOnly   string   `json:"readOnly"`   // why records cannot be changed here, "" if they can
	PassedOver string   `json:"passedOver"` // acknowledged updates that the file lacks, "" if none
	Records    int64    `json:"records"`    // -1: not known
	Bytes      int64    `json:"bytes"`
	Expired    int64    `json:"expired"`
	Evicted    int64    `json:"evicted"`
	File       *fileRow `json:"file"`       // null for databases in memory
	Checkpoint *Task    `json:"checkpoint"` // the latest one started here
}

// fileRow has the fields of database files.
type fileRow struct {
	Overlay     int64   `json:"overlay"`
	Checkpoints uint64  `json:"checkpoints"`
	Seconds     float64 `json:"seconds"` // sum of all checkpoints
	Error       string  `json:"error"`   // of the latest checkpoint, or else of the latest merge
	Stalls      int64   `json:"stalls"`
	Stalled     float64 `json:"stalled"` // seconds
}

func (a *API) databases(_ http.ResponseWriter, _ *http.Request, s *Sources) (any, error) {
	rows := []databaseRow{}
	for _, d := range s.Catalog.All() {
		rows = append(rows, a.row(d, s.Catalog))
	}
	return map[string]any{"databases": rows, "checkpointAll": a.tasks.get(allCheckpoints)}, nil
}

func (a *API) row(d *db.DB, c *db.Catalog) databaseRow {
	m := d.Measure()
	ordered := d.Info().Ordered
	row := databaseRow{
		Index: d.Index(), Name: d.Name(), Path: d.Info().Path, Kind: kindText(d), Services: d == c.Services(), OnDisk: d.Info().OnDisk, Ordered: ordered,
		Persistent: d.Info().Persistent, ReadOnly: readOnly(d, c), Records: m.Records, Bytes: m.Bytes, Expired: m.Expired, Evicted: m.Evicted,
		Checkpoint: a.tasks.get(checkpointName(d)),
	}
	if passed := d.Info().PassedOver; passed != nil {
		row.PassedOver = passed.Advice(d.Info().Path)
	}
	if d.Info().OnDisk {
		n, seconds, _ := m.File.Checkpoints.Snapshot(1e-9)
		row.File = &fileRow{Overlay: m.File.OverlayBytes, Checkpoints: n, Seconds: seconds, Stalls: m.File.Stalls, Stalled: m.File.Stalled.Seconds()}
		if err := cmp.Or(m.File.Err, m.File.MergeErr); err != nil {
			row.File.Error = err.Error()
		}
	}
	return row
}

// readOnly returns the reason why records of a database must not be changed by hand, "" if they
// may.
func readOnly(d *db.DB, c *db.Catalog) string {
	switch {
	case d.Info().ReadOnly:
		return "the server was started with -ord"
	case c.Guarded():
		return "updates come from the master only (-slave-read-only)"
	case d.Info().Kind == expr.Text:
		return "it is a text file: lines are only added, with the usual tools"
	case d == c.Services():
		return "it has the records of locks, sequences and quotas, which only those change"
	}
	return ""
}

func kindText(d *db.DB) string {
	switch d.Info().Kind {
	case expr.ProtoHash:
		return "hash in memory, prototype (-)"
	case expr.ProtoTree:
		return "tree in memory, prototype (+)"
	case expr.Stash:
		return "hash in memory (:)"
	case expr.Cache:
		return "cache in memory (*)"
	case expr.Grass:
		return "tree in memory (%)"
	case expr.FileHash:
		return "file (.kch)"
	case expr.FileTree:
		return "file (.kct)"
	case expr.DirHash:
		return "file (.kcd)"
	case expr.DirTree:
		return "file (.kcf)"
	case expr.Text:
		return "text file (.kcx)"
	}
	return "plug-in"
}

const allCheckpoints = "checkpoint of all databases"

func checkpointName(d *db.DB) string { return fmt.Sprintf("checkpoint of database %d", d.Index()) }

// checkpoint writes all updates of a database into its file, and syncs the file.
func (a *API) checkpoint(_ http.ResponseWriter, r *http.Request, s *Sources) (any, error) {
	d, err := database(r, s)
	if err != nil {
		return nil, err
	}
	if d.Info().Shared {
		return nil, refused(http.StatusNotImplemented, "an engine keeps %s: this server has no file of it to write", d.Name())
	}
	if !d.Info().OnDisk {
		return nil, refused(http.StatusNotImplemented, "%s is in memory: there is no file to write", d.Name())
	}
	a.note(r, checkpointName(d))
	return a.start(checkpointName(d), func(context.Context) error { return d.Synchronize(true, nil) })
}

// checkpointAll does so for all databases, one after the other.
func (a *API) checkpointAll(_ http.ResponseWriter, r *http.Request, s *Sources) (any, error) {
	a.note(r, allCheckpoints)
	return a.start(allCheckpoints, func(ctx context.Context) error {
		for _, d := range s.Catalog.All() {
			if err := d.Synchronize(true, nil); err != nil {
				return fmt.Errorf("%s: %w", d.Name(), err)
			}
			if ctx.Err() != nil {
				return errStopped
			}
		}
		return nil
	})
}
