package compat

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
)

// TestCounters replays the one case about the counters of report. Its exact comparison includes the order in which a
// hash database lists keys, which nobody can promise; here that order is free, everything else is as recorded.
func TestCounters(t *testing.T) {
	p := loadProfiles(t)["counters"]
	server := startProfile(t, ktproc.Build(t, "ktserver"), p)
	r := &runner{addr: server.Addr(), port: server.Port, dbs: len(p.DBs)}
	for _, c := range loadCases(t) {
		if c.Server != "counters" {
			continue
		}
		for i := range c.Steps {
			s := &c.Steps[i]
			if s.Cmp == "" && s.Send != nil && strings.HasPrefix(string(*s.Send), "POST /rpc/match_") {
				s.Cmp = "set"
			}
		}
		require.Empty(t, r.run(&c))
	}
	require.Empty(t, r.surplus())
	server.Stop(t)
}
