package remote_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
)

func TestWaitSaysHowManyFollowersHaveIt(t *testing.T) {
	master := ktproc.Start(t, ktproc.Options{Bin: serverBin(t), Dir: t.TempDir(), DBs: []string{":"}, Args: []string{"-le", "-ulog", "ulog", "-sid", "1"}})
	number := strconv.Itoa(master.Port)
	at := func(name string, args ...string) result {
		return command(t, "", append([]string{name, "-port", number}, args...)...)
	}
	require.Zero(t, at("set", "japan", "tokyo").exit)
	none := at("wait", "-time", "0.05")
	require.Equal(t, 1, none.exit)
	require.Contains(t, none.stderr, "0 of 1 followers have everything up to ts=")
	ktproc.Start(t, ktproc.Options{Bin: serverBin(t), Dir: t.TempDir(), DBs: []string{":"}, Args: []string{
		"-le", "-sid", "2", "-rts", "rts", "-mhost", "127.0.0.1", "-mport", number}})
	one := at("wait", "-time", "30")
	require.Zero(t, one.exit, one.stderr)
	require.Equal(t, "1\n", one.stdout)
	two := at("wait", "-n", "2", "-time", "0.05")
	require.Equal(t, 1, two.exit)
	require.Contains(t, two.stderr, "1 of 2 followers")
}
