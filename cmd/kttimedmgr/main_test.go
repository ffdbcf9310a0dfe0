package main_test

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
)

func TestExitCodes(t *testing.T) {
	bin := ktproc.Build(t, "kttimedmgr")
	out, err := exec.Command(bin, "version").Output()
	require.NoError(t, err)
	require.Equal(t, "Kyoto Tycoon 0.9.56b (2.19) on Linux (Kyoto Cabinet 1.2.76a)\n", string(out))

	var exit *exec.ExitError
	out, err = exec.Command(bin, "nonsense").Output()
	require.True(t, errors.As(err, &exit))
	require.Equal(t, 1, exit.ExitCode())
	require.Contains(t, string(exit.Stderr), "\nusage:\n")
	require.Empty(t, out)
}
