package server

import "gotycoon/internal/metrics"

// clusterMetrics are the definitions of the metrics of a member of a cluster.
func clusterMetrics() []metrics.Definition {
	return []metrics.Definition{
		metrics.Define("gotycoon_cluster_disk_stalled_seconds", metrics.Gauge,
			"For how long the disk of the update log has done nothing although updates wait for it; a primary hands over at -disk-timeout."),
	}
}

// clusterFigures returns the metrics of a member.
func clusterFigures(n *clusterNode) metrics.Source {
	return metrics.Source{Definitions: clusterMetrics(), Read: func(put metrics.Put) {
		put("gotycoon_cluster_disk_stalled_seconds", n.Stalled().Seconds())
	}}
}
