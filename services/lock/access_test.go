package lock

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/access"
	"gotycoon/access/accesstest"
	"gotycoon/services"
)

func TestRights(t *testing.T) {
	const no = "ACCESS_DENIED: no such right"
	for rule, want := range map[string][]string{
		"allow anyone read":                {no, "STATUS 0 0 a", no, no, "INVALID_COMMAND"},
		"allow anyone write service=lock":  {"GRANTED 1 0 a 120", no, "RELEASED 0 0 a", no, no},
		"allow anyone admin":               {"GRANTED 1 0 a 120", "STATUS 1 0 a", "RELEASED 0 0 a", "NOT_CANCELLED 0 0 a", "INVALID_COMMAND"},
		"allow anyone read service=quota":  {no, no, no, no, no},
		"allow anyone admin from=10.0.0.1": {no, no, no, no, no},
	} {
		_, addr := start(t, Options{Options: services.Options{Access: accesstest.Guard(t, rule)}})
		p := dial(t, addr)
		for i, line := range []string{"lock a", "status a", "release a", "cancel a 127.0.0.1:1", "nonsense"} {
			require.Equal(t, want[i], p.call("%s", line), "%s: %s", rule, line)
		}
		p.send("quit")
	}
}

// TestALockIsNotGrantedWithoutTheRight takes the right to lock away while one client holds a lock
// and another waits for it. What must hold: both connections end, and the waiting request is not
// granted.
func TestALockIsNotGrantedWithoutTheRight(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access")
	rule := func(line string) { require.NoError(t, os.WriteFile(path, []byte(line), 0o600)) }
	rule("allow anyone read,write")
	g, err := access.Open(access.Options{Path: path})
	require.NoError(t, err)
	t.Cleanup(g.Close)
	_, addr := start(t, Options{Options: services.Options{Access: g}})
	holder, waits, looks := dial(t, addr), dial(t, addr), dial(t, addr)
	require.Equal(t, "GRANTED 1 0 k 120", holder.call("lock k"))
	waits.send("lock k 1 -1")
	require.Eventually(t, func() bool { return looks.call("status k") == "STATUS 1 1 k" }, 10*time.Second, time.Millisecond)
	rule("allow anyone read")
	g.Reload()
	for _, p := range []*peer{holder, waits} {
		rest, _ := io.ReadAll(p.in) // or the connection is reset
		require.NotContains(t, string(rest), "GRANTED")
	}
	require.Eventually(t, func() bool { return looks.call("status k") == "STATUS 0 0 k" }, 10*time.Second, time.Millisecond)
}
