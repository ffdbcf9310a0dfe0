//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A name that is misspelt must not look like a measurement that went well.
func TestUnknownMeasurementsAreRefused(t *testing.T) {
	require.EqualError(t, new(bench).run([]string{"http", "latenzy"}), `-only: there is no measurement "latenzy"`)
	seen := map[string]bool{}
	for _, m := range new(bench).measurements() {
		require.False(t, seen[m.name], m.name)
		seen[m.name] = true
	}
}
