package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a service would refuse when it starts is refused before anything is opened.
func TestValuesOfServicesAreChecked(t *testing.T) {
	for _, c := range []ServicesConfig{
		{Reserve: 64}, {Reserve: -1}, {ServerNo: 4096}, {ServerNo: -1}, {Limit: -1}, {CounterPort: 1, Database: ":"}, {LockPort: 1, Database: ":"}, {QuotaPort: 1, Database: "%"},
	} {
		cfg := DefaultConfig()
		cfg.Services = c
		require.Error(t, cfg.check(), "%+v", c)
	}
	for _, c := range []ServicesConfig{
		{Reserve: 63, ServerNo: 4095}, {CounterPort: 1, Database: "s.kct"}, {QuotaPort: 1, Database: "s.kct#opts=c"}, {SequencePort: 1},
	} {
		cfg := DefaultConfig()
		cfg.Services = c
		require.NoError(t, cfg.check(), "%+v", c)
	}
}

// Options of a service that is off do nothing, which somebody who has forgotten its port is told.
func TestOptionsWithoutTheirServiceAreNoted(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Services = ServicesConfig{Limit: 5, Export: t.TempDir() + "/journals", LockStrict: true, Reserve: 1, CounterConns: 1}
	_, _, notes := Examine(cfg)
	require.Subset(t, notes, []string{
		"-quota-limit: has no effect without -quota-port", "-quota-export: has no effect without -quota-port", "-lock-strict: has no effect without -lock-port",
		"-sequence-reserve: has no effect without -sequence-port", "-counter-max-connections: has no effect without -counter-port",
	})
	cfg.Services = ServicesConfig{Limit: 5, QuotaPort: 1}
	_, _, notes = Examine(cfg)
	for _, note := range notes {
		require.NotContains(t, note, "no effect")
	}
}
