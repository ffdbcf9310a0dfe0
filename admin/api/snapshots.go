package api

import (
	"context"
	"net/http"
	"time"

	"gotycoon/ulog"
)

// Snapshots takes snapshots of all databases of a server.
type Snapshots interface {
	Take(ctx context.Context) error // of all databases, now
	State() (SnapshotState, error)
}

// SnapshotState describes the snapshots of a server.
type SnapshotState struct {
	Dir        string         `json:"dir"`
	Every      float64        `json:"every"` // seconds; 0: only at the end of the server
	Compressor string         `json:"compressor"`
	Rounds     int64          `json:"rounds"` // since the start
	Failures   int64          `json:"failures"`
	Seconds    float64        `json:"seconds"` // duration of the latest round
	Files      []SnapshotFile `json:"files"`
}

// SnapshotFile is a snapshot in the directory.
type SnapshotFile struct {
	Path     string `json:"path"`
	Database int    `json:"database"`
	Name     string `json:"name"` // of the database; empty: no database has this number
	Time     int64  `json:"time"` // UNIX milliseconds
	Stamp    uint64 `json:"stamp,string"`
	Records  int64  `json:"records"`
	Bytes    int64  `json:"bytes"`
	Error    string `json:"error"` // why it cannot be read
}

const snapshotTask = "snapshot of all databases"

const snapshotsOff = "Snapshots are off. Start the server with -bgs DIR to have them taken when it ends and every -bgsi SECONDS, 180 if not given; " +
	"-bgsc names a compressor."

func (a *API) snapshots(_ http.ResponseWriter, _ *http.Request, s *Sources) (any, error) {
	if s.Snapshots == nil {
		return off(snapshotsOff), nil
	}
	state, err := s.Snapshots.State()
	if err != nil {
		return nil, err
	}
	return map[string]any{"state": state, "task": a.tasks.get(snapshotTask)}, nil
}

func (a *API) takeSnapshots(_ http.ResponseWriter, r *http.Request, s *Sources) (any, error) {
	if s.Snapshots == nil {
		return nil, refused(http.StatusNotImplemented, "%s", snapshotsOff)
	}
	a.note(r, snapshotTask)
	return a.start(snapshotTask, s.Snapshots.Take)
}

// segment is a file of an update log.
type segment struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	Last  int64  `json:"last"` // newest update, in UNIX milliseconds; 0: none
	Stamp uint64 `json:"stamp,string"`
}

// logHold is a holder of log segments.
type logHold struct {
	Kind  ulog.Kind `json:"kind"`
	What  string    `json:"what"`
	Bytes int64     `json:"bytes"`
	Files int       `json:"files"`
	Stamp uint64    `json:"stamp,string"` // updates newer than this are needed
	Weak  bool      `json:"weak"`         // the hold does not count when the disk is full
	Since int64     `json:"since"`        // UNIX milliseconds
	Until int64     `json:"until"`        // likewise; 0: it does not end by itself
}

// logRow is an update log.
type logRow struct {
	Dir      string    `json:"dir"`
	Private  bool      `json:"private"` // it belongs to one database file
	Bytes    int64     `json:"bytes"`
	Appended int64     `json:"appended"` // bytes appended since the start
	Error    string    `json:"error"`    // why nothing is acknowledged any more
	Segments []segment `json:"segments"`
	Holds    []logHold `json:"holds"`
	Fsyncs   uint64    `json:"fsyncs"`
	Fsync    *float64  `json:"fsync"` // mean duration in seconds
	Last     int64     `json:"last"`
	Overdue  int64     `json:"overdue"` // bytes beyond -ulog-keep-… that a holder needs
	Removed  int64     `json:"removed"` // segments removed since the start
}

// logs answers with the update logs.
func (a *API) logs(_ http.ResponseWriter, _ *http.Request, s *Sources) (any, error) {
	answer := map[string]any{"off": ""}
	if s.Catalog.Log() == nil {
		answer["off"] = "There is no update log that other servers could follow. Start the server with -ulog DIR and -sid NUMBER to have one."
	}
	rows := []logRow{}
	for _, l := range s.Catalog.Logs() {
		row := logRow{Dir: l.Dir(), Private: l != s.Catalog.Log(), Appended: l.Bytes(), Removed: l.Removed(), Segments: []segment{}, Holds: []logHold{}}
		if !row.Private {
			row.Overdue = s.Catalog.LogOverdue()
		}
		if err := l.Err(); err != nil {
			row.Error = err.Error()
		}
		files, err := l.Files()
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			row.Bytes += f.Size
			seg := segment{Path: f.Path, Bytes: f.Size, Stamp: uint64(f.Last)}
			if f.Last > 0 {
				seg.Last = f.Last.Time().UnixMilli()
			}
			row.Last = max(row.Last, seg.Last)
			row.Segments = append(row.Segments, seg)
		}
		for _, h := range l.Holds(files) {
			hold := logHold{Kind: h.Kind, What: h.What, Bytes: h.Bytes, Files: h.Files, Stamp: uint64(h.From), Weak: h.Weak, Since: h.Since.UnixMilli()}
			if !h.Until.IsZero() {
				hold.Until = h.Until.UnixMilli()
			}
			row.Holds = append(row.Holds, hold)
		}
		if o := l.Observer(); o != nil {
			n, sum, _ := o.Fsyncs.Snapshot(float64(time.Nanosecond) / float64(time.Second))
			if row.Fsyncs = n; n > 0 {
				row.Fsync = new(sum / float64(n))
			}
		}
		rows = append(rows, row)
	}
	answer["logs"] = rows
	return answer, nil
}
