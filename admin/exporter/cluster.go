package exporter

import (
	"github.com/prometheus/client_golang/prometheus"

	"gotycoon/admin/status"
)

func clusterMetrics() []Definition {
	of := labels("name")
	return []Definition{
		{"gotycoon_cluster_term", Gauge, "Term of the newest election that this member of the cluster name knows.", of},
		{"gotycoon_cluster_leading", Gauge, "1 while this server answers clients as the primary.", of},
		{"gotycoon_cluster_required", Gauge, "Followers that must have an update before it is answered.", of},
		{"gotycoon_cluster_members", Gauge, "Members that the cluster has, witnesses included.", of},
		{"gotycoon_cluster_followers", Gauge, "Of them: those that can confirm updates of the primary, with data and a vote.", of},
		{"gotycoon_cluster_members_present", Gauge, "Members that answer the primary, itself included. Only on the primary.", of},
		{"gotycoon_cluster_member_present", Gauge, "1 for a member that answers the primary, 0 for one that does not. Only on the primary.", labels("name", "member")},
		{"gotycoon_cluster_primary_changes_total", Counter, "How often a primary was appointed, also the same one again.", of},
		{"gotycoon_cluster_primary_change_timestamp_seconds", Gauge, "When this server noticed the latest appointment of a primary; its start if there was none since.", of},
		{"gotycoon_cluster_aside_logs", Gauge, "Logs of updates that this member has put aside, and that nobody has removed since.", of},
		{"gotycoon_cluster_disk_stalled_seconds", Gauge, "For how long the disk of the update log has done nothing although updates wait for it; a primary hands over at -disk-timeout.", of},
	}
}

// Cluster returns the metrics of a member of a cluster.
func Cluster(now func() status.Cluster) prometheus.Collector {
	return newCollector(clusterMetrics(), func(s *sink) {
		c := now()
		s.count("gotycoon_cluster_term", int64(c.Term), c.Name)
		s.put("gotycoon_cluster_leading", boolean(c.Leading), c.Name)
		s.count("gotycoon_cluster_required", int64(c.Required), c.Name)
		s.count("gotycoon_cluster_members", int64(c.Members), c.Name)
		s.count("gotycoon_cluster_followers", int64(c.Followers), c.Name)
		s.count("gotycoon_cluster_primary_changes_total", int64(c.Changes), c.Name)
		s.put("gotycoon_cluster_primary_change_timestamp_seconds", seconds(c.Changed), c.Name)
		s.count("gotycoon_cluster_aside_logs", int64(c.Asides), c.Name)
		s.put("gotycoon_cluster_disk_stalled_seconds", c.Stalled.Seconds(), c.Name)
		if c.Answering == nil {
			return
		}
		present := 0
		for member, answers := range c.Answering {
			s.put("gotycoon_cluster_member_present", boolean(answers), c.Name, member)
			if answers {
				present++
			}
		}
		s.count("gotycoon_cluster_members_present", int64(present), c.Name)
	})
}
