package exporter

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gotycoon/db"
	"gotycoon/ulog"
)

func databaseMetrics() []Definition {
	of := labels("database", "index")
	return []Definition{
		{"gotycoon_database_records", Gauge, "Records, expired ones that are not yet collected included. Of a file that is written to a lot: as of the " +
			"latest checkpoint or count. Not for text databases.", of},
		{"gotycoon_database_bytes", Gauge, "Size of the file, or of the records in memory.", of},
		{"gotycoon_database_overlay_bytes", Gauge, "Memory of the updates that are not yet in the file. Files only.", of},
		{"gotycoon_database_reserve_bytes", Gauge, "Memory of earlier updates, kept for 10 to 20 seconds for the next ones, twice -checkpoint at most. Files only.", of},
		{"gotycoon_database_checkpoint_duration_seconds", Histogram, "Time of checkpoints, which move updates into the file. Files only.", of},
		{"gotycoon_database_checkpoint_failing", Gauge, "1 when the latest checkpoint has failed: updates stay in memory and log. Files only.", of},
		{"gotycoon_database_runs", Gauge, "Sorted runs of updates in the file that are not merged with its records. Files only.", of},
		{"gotycoon_database_brake", Gauge, "How full the room for updates that the file has not taken is: 0 no writer is slowed down, 1 writers stop. Files only.", of},
		{"gotycoon_database_stalls_total", Counter, "Updates that were slowed down or stopped because the file was behind. Files only.", of},
		{"gotycoon_database_stall_seconds_total", Counter, "Time in which some update or other was slowed down or stopped. Files only.", of},
		{"gotycoon_database_compacting", Gauge, "1 while the file is being compacted. Files only.", of},
		{"gotycoon_database_compact_copied_bytes", Gauge, "Bytes of keys and values that the compaction under way has copied. Files only.", of},
		{"gotycoon_database_merge_failing", Gauge, "1 when the latest piece of a merge has failed: runs pile up in the file. Files only.", of},
		{"gotycoon_database_compact_failing", Gauge, "1 when the latest compaction has failed, was aborted, or gave way to clients. Files only.", of},
		{"gotycoon_database_compactions_total", Counter, "Compactions of the file that have ended well. Files only.", of},
		{"gotycoon_database_passed_over", Gauge, "1 when the file was opened without acknowledged updates that only its update log has. Files only.", of},
		{"gotycoon_database_expired_total", Counter, "Records collected because their time was over.", of},
		{"gotycoon_database_evicted_total", Counter, "Records removed because of a capacity limit. The engines' own limits (capcnt, capsiz) are not counted.", of},
	}
}

// Databases returns the metrics of all databases.
func Databases(c *db.Catalog) prometheus.Collector {
	return newCollector(databaseMetrics(), func(s *sink) {
		for _, d := range c.All() {
			readDatabase(s, d)
		}
	})
}

func readDatabase(s *sink, d *db.DB) {
	name, index := d.Name(), strconv.Itoa(d.Index())
	m := d.Measure()
	if m.Records >= 0 {
		s.count("gotycoon_database_records", m.Records, name, index)
	}
	s.count("gotycoon_database_bytes", m.Bytes, name, index)
	s.count("gotycoon_database_expired_total", m.Expired, name, index)
	s.count("gotycoon_database_evicted_total", m.Evicted, name, index)
	if !d.Info().OnDisk {
		return
	}
	s.count("gotycoon_database_overlay_bytes", m.File.OverlayBytes, name, index)
	s.count("gotycoon_database_reserve_bytes", m.File.ReserveBytes, name, index)
	s.histogram("gotycoon_database_checkpoint_duration_seconds", m.File.Checkpoints, perNano, name, index)
	s.put("gotycoon_database_checkpoint_failing", boolean(m.File.Err != nil), name, index)
	s.put("gotycoon_database_merge_failing", boolean(m.File.MergeErr != nil), name, index)
	s.count("gotycoon_database_runs", m.File.Runs, name, index)
	s.put("gotycoon_database_brake", m.File.Fill, name, index)
	s.count("gotycoon_database_stalls_total", m.File.Stalls, name, index)
	s.put("gotycoon_database_compacting", boolean(m.File.Compaction.Running), name, index)
	s.count("gotycoon_database_compact_copied_bytes", m.File.Compaction.Copied, name, index)
	s.put("gotycoon_database_compact_failing", boolean(m.File.Compaction.Err != nil), name, index)
	s.count("gotycoon_database_compactions_total", m.File.Compaction.Ended, name, index)
	s.put("gotycoon_database_passed_over", boolean(d.Info().PassedOver != nil), name, index)
	s.put("gotycoon_database_stall_seconds_total", m.File.Stalled.Seconds(), name, index)
}

func logMetrics() []Definition {
	of := labels("log")
	return []Definition{
		{"gotycoon_log_appended_bytes_total", Counter, "Bytes of records appended.", of},
		{"gotycoon_log_bytes", Gauge, "Size of all segments.", of},
		{"gotycoon_log_segments", Gauge, "Segments.", of},
		{"gotycoon_log_held_bytes", Gauge, "Size of the segments that ulog_remove keeps for a holder, which still needs updates in them.", labels("log", "holder")},
		{"gotycoon_log_kept_bytes", Gauge, "The same by kinds of holders: the most that one of the kind needs. Kinds are database, snapshot, copy (copies and " +
			"backups under way), slave, away (slaves that have gone) and hold (ulog_hold).", labels("log", "kind")},
		{"gotycoon_log_overdue_bytes", Gauge, "Size of the segments beyond -ulog-keep-age, -ulog-keep-size or -ulog-keep-count that are kept for a holder.", of},
		{"gotycoon_log_removed_segments_total", Counter, "Segments removed.", of},
		{"gotycoon_log_oldest_timestamp_seconds", Gauge, "Time stamp of the newest update in the oldest segment.", of},
		{"gotycoon_log_group_records", Histogram, "Records written together.", of},
		{"gotycoon_log_group_bytes", Histogram, "Bytes written together.", of},
		{"gotycoon_log_fsync_duration_seconds", Histogram, "Time of fsyncs.", of},
		{"gotycoon_log_failed", Gauge, "1 when a write or fsync has failed: nothing is acknowledged any more.", of},
		{"gotycoon_log_last_timestamp_seconds", Gauge, "Time stamp of the newest update.", of},
	}
}

// Logs returns the metrics of all update logs, also of private ones. A log without an observer
// lacks some of them.
func Logs(c *db.Catalog) prometheus.Collector {
	return newCollector(logMetrics(), func(s *sink) {
		for _, l := range c.Logs() {
			readLog(s, l)
		}
		if l := c.Log(); l != nil {
			s.count("gotycoon_log_overdue_bytes", c.LogOverdue(), l.Dir())
		}
	})
}

func readLog(s *sink, l *ulog.Log) {
	dir := l.Dir()
	s.count("gotycoon_log_appended_bytes_total", l.Bytes(), dir)
	s.count("gotycoon_log_removed_segments_total", l.Removed(), dir)
	s.put("gotycoon_log_failed", boolean(l.Err() != nil), dir)
	s.put("gotycoon_log_last_timestamp_seconds", seconds(l.Last().Time()), dir)
	if files, err := l.Files(); err == nil {
		size := int64(0)
		for _, f := range files {
			size += f.Size
		}
		if len(files) > 0 && files[0].Last > 0 {
			s.put("gotycoon_log_oldest_timestamp_seconds", seconds(files[0].Last.Time()), dir)
		}
		s.count("gotycoon_log_bytes", size, dir)
		s.count("gotycoon_log_segments", int64(len(files)), dir)
		held, kept := map[string]int64{}, map[ulog.Kind]int64{} // several holders may have the same name
		for _, h := range l.Holds(files) {
			held[h.What] = max(held[h.What], h.Bytes)
			kept[h.Kind] = max(kept[h.Kind], h.Bytes)
		}
		for kind, bytes := range kept {
			s.count("gotycoon_log_kept_bytes", bytes, dir, string(kind))
		}
		for holder, bytes := range held {
			s.count("gotycoon_log_held_bytes", bytes, dir, holder)
		}
	}
	if o := l.Observer(); o != nil {
		s.histogram("gotycoon_log_group_records", o.Records, asItIs, dir)
		s.histogram("gotycoon_log_group_bytes", o.Bytes, asItIs, dir)
		s.histogram("gotycoon_log_fsync_duration_seconds", o.Fsyncs, perNano, dir)
	}
}

// seconds returns a moment as Prometheus counts it.
func seconds(t time.Time) float64 { return float64(t.UnixNano()) / unixNanos }
