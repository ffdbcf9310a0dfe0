package exporter_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"gotycoon/admin/exporter"
	"gotycoon/admin/status"
)

// Followers that cannot be told apart by their labels are one, and the slowest of them counts.
func TestFollowersWithTheSameLabelsAreOne(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(exporter.Replicas(func() []status.Replica {
		return []status.Replica{
			{SID: "2", Peer: "A", State: "streaming", Seconds: 0, Records: 0, Contact: at},
			{SID: "2", Peer: "B", State: "streaming", Seconds: 0, Records: status.Unknown, Contact: at},
			{SID: "2", Peer: "A", State: "stalled", Seconds: 7, Records: 3, Contact: at.Add(-time.Minute)},
			{SID: "2", Peer: "A", State: "stalled", Seconds: status.Unknown, Records: 9, Contact: at},
		}
	}))
	families, err := registry.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			values[name] = m.GetGauge().GetValue()
		}
	}
	require.Equal(t, map[string]float64{
		"gotycoon_replicas":                                   4,
		"gotycoon_replica_state A 2 streaming":                1,
		"gotycoon_replica_state A 2 stalled":                  1,
		"gotycoon_replica_state B 2 streaming":                1,
		"gotycoon_replica_lag_seconds A 2":                    7,
		"gotycoon_replica_lag_seconds B 2":                    0,
		"gotycoon_replica_lag_records A 2":                    9,
		"gotycoon_replica_last_contact_timestamp_seconds A 2": 1_799_999_940,
		"gotycoon_replica_last_contact_timestamp_seconds B 2": 1_800_000_000,
	}, values)
}
