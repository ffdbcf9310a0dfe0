package needs

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// outcome is a test that notes how it ends.
type outcome struct {
	testing.TB
	failed, skipped string
}

func (o *outcome) Helper()           {}
func (o *outcome) Log(...any)        {}
func (o *outcome) Fatal(args ...any) { o.failed = fmt.Sprint(args...) }
func (o *outcome) Skip(args ...any)  { o.skipped = fmt.Sprint(args...) }

func TestAMissingProgramFailsWhereEverythingIsInstalled(t *testing.T) {
	const want = "there-is-none is not here: install Debian's package none ('make test-tools' does)"
	t.Setenv("GOTYCOON_CI", "")
	var o outcome
	require.NotEmpty(t, Program(&o, "", "there-is-none", "go"))
	require.Empty(t, Perhaps(&o, "none", "there-is-none"))
	require.Zero(t, o)
	require.Empty(t, Program(&o, "none", "there-is-none"))
	require.Equal(t, outcome{skipped: want}, o)
	t.Setenv("GOTYCOON_CI", "1")
	for _, ask := range []func(testing.TB, string, ...string) string{Program, Perhaps} {
		o = outcome{}
		require.Empty(t, ask(&o, "none", "there-is-none"))
		require.Equal(t, want, o.failed)
	}
}
