package exporter_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"gotycoon/admin/exporter"
	"gotycoon/admin/status"
)

func TestMetricsOfACluster(t *testing.T) {
	shown := status.Cluster{
		Name: "shop", Term: 7, Required: 1, Members: 3, Followers: 2, Changes: 4, Changed: time.Unix(1_800_000_000, 0), Asides: 1, Stalled: 5 * time.Second,
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(exporter.Cluster(func() status.Cluster { return shown }))
	values := func() map[string]float64 {
		families, err := registry.Gather()
		require.NoError(t, err)
		values := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				name := f.GetName()
				for _, l := range m.GetLabel() {
					name += " " + l.GetValue()
				}
				values[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		return values
	}
	want := map[string]float64{
		"gotycoon_cluster_term shop":                             7,
		"gotycoon_cluster_leading shop":                          0,
		"gotycoon_cluster_required shop":                         1,
		"gotycoon_cluster_members shop":                          3,
		"gotycoon_cluster_followers shop":                        2,
		"gotycoon_cluster_primary_changes_total shop":            4,
		"gotycoon_cluster_primary_change_timestamp_seconds shop": 1_800_000_000,
		"gotycoon_cluster_aside_logs shop":                       1,
		"gotycoon_cluster_disk_stalled_seconds shop":             5,
	}
	require.Equal(t, want, values())
	shown.Leading, shown.Answering = true, map[string]bool{"a:1": true, "b:1": true, "c:1": false}
	want["gotycoon_cluster_leading shop"] = 1
	want["gotycoon_cluster_members_present shop"] = 2
	want["gotycoon_cluster_member_present a:1 shop"] = 1
	want["gotycoon_cluster_member_present b:1 shop"] = 1
	want["gotycoon_cluster_member_present c:1 shop"] = 0
	require.Equal(t, want, values())
}
