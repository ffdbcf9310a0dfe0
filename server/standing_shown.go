package server

import (
	"fmt"
	"strconv"

	"gotycoon/internal/metrics"
)

// report adds the rows about the role. The original has no such rows.
func (s *standing) report(rows map[string]string) {
	is, _ := s.look()
	if s.quiet && s.lone() {
		return // the original has no such rows
	}
	rows["repl_role"] = string(is.Role)
	rows["repl_role_since"] = fmt.Sprintf("%.6f", float64(is.Since.UnixMicro())/1e6)
	if is.Primary != "" {
		rows["repl_primary"] = is.Primary
	}
	if is.Term > 0 {
		rows["repl_role_term"] = strconv.FormatUint(is.Term, 10)
	}
}

// standingMetrics are the metrics of the role, and of the command that is told of it.
func standingMetrics() []metrics.Definition {
	return []metrics.Definition{
		metrics.Define("gotycoon_role", metrics.Gauge, "1 for the role of this server for data: primary, replica or none.", "role"),
		metrics.Define("gotycoon_role_since_timestamp_seconds", metrics.Gauge, "Since when it has had this role, term and primary."),
		metrics.Define("gotycoon_role_term", metrics.Gauge, "Term of the election that has decided so; 0 without a cluster."),
		metrics.Define("gotycoon_role_commands_total", metrics.Counter, "How often the command of -on-role was run."),
		metrics.Define("gotycoon_role_command_failures_total", metrics.Counter, "How often it has failed, or was killed at its time limit."),
	}
}

// standingFigures returns the metrics of the role.
func standingFigures(s *standing, c *roleCommand) metrics.Source {
	return metrics.Source{Definitions: standingMetrics(), Read: func(put metrics.Put) {
		is, _ := s.look()
		put("gotycoon_role", 1, string(is.Role))
		put("gotycoon_role_since_timestamp_seconds", float64(is.Since.UnixMilli())/1e3)
		put("gotycoon_role_term", float64(is.Term))
		put("gotycoon_role_commands_total", float64(c.runs.Load()))
		put("gotycoon_role_command_failures_total", float64(c.failures.Load()))
	}}
}
