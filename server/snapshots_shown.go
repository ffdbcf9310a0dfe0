package server

import (
	"context"
	"errors"
	"time"

	"gotycoon/admin/api"
	"gotycoon/admin/exporter"
	"gotycoon/snapshot"
)

// figures are the metrics of snapshots.
func (s *snapshots) figures() exporter.SnapshotStats {
	st := &s.stats
	now := exporter.SnapshotStats{Rounds: st.rounds.Load(), Failures: st.failed.Load(), Duration: time.Duration(st.nanos.Load())}
	for _, d := range s.catalog.All() {
		if at, ok := st.at(d.Index()); ok {
			now.Newest = append(now.Newest, exporter.Snapshot{Database: d.Name(), Index: d.Index(), At: at.Time()})
		}
	}
	return now
}

// snapshotConsole shows snapshots to the console.
type snapshotConsole struct{ *snapshots }

var (
	errSnapshotBusy   = errors.New("snapshots are being taken already")
	errSnapshotFailed = errors.New("at least one database has no new snapshot: the log says why")
)

// Take implements api.Snapshots.
func (s snapshotConsole) Take(ctx context.Context) error {
	if !s.mu.TryLock() {
		return errSnapshotBusy
	}
	defer s.mu.Unlock()
	if !s.takeAllLocked(newPauses(ctx.Done()).pause) {
		return errSnapshotFailed
	}
	return nil
}

// State implements api.Snapshots.
func (s snapshotConsole) State() (api.SnapshotState, error) {
	state := api.SnapshotState{
		Dir: s.opts.Dir, Every: max(0, s.every.get().Seconds()), Compressor: s.opts.Compressor.String(),
		Rounds: s.stats.rounds.Load(), Failures: s.stats.failed.Load(), Seconds: time.Duration(s.stats.nanos.Load()).Seconds(),
		Files: []api.SnapshotFile{},
	}
	files, err := snapshot.List(s.opts.FS, s.opts.Dir)
	if err != nil {
		return state, err
	}
	for _, f := range files {
		row := api.SnapshotFile{
			Path: f.Path, Database: f.Index, Time: f.Header.Stamp.Time().UnixMilli(), Stamp: uint64(f.Header.Stamp), Records: f.Header.Count,
		}
		if d := s.catalog.Numbered(f.Index); d != nil {
			row.Name = d.Name()
		}
		if info, err := s.opts.FS.Stat(f.Path); err == nil {
			row.Bytes = info.Size()
		}
		if f.Err != nil {
			row.Error, row.Time = unnamed(f.Err).Error(), 0
		}
		state.Files = append(state.Files, row)
	}
	return state, nil
}
