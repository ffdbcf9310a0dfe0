package counter_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/freeport"
)

const (
	yrmcdsd = "/usr/sbin/yrmcdsd"
	limit   = 20 * time.Second // of anything that a test waits for
)

// startYrmcds runs the original with its counter extension on free ports of loopback, and returns
// the address of that and the process ID. settings are further lines of its configuration file.
func startYrmcds(tb testing.TB, settings ...string) (addr string, pid int) {
	tb.Helper()
	if _, err := os.Stat(yrmcdsd); err != nil {
		tb.Skip("to compare with yrmcds, install Debian's package of that name: " + err.Error())
	}
	dir := tb.TempDir()
	first := freeport.TakeRow(tb, 3)
	// It listens on the virtual address, and on each further one; without any it would listen on
	// all of the machine.
	text := fmt.Sprintf("virtual_ip = 127.0.0.1\nbind_ip = 127.0.0.2\nport = %d\nrepl_port = %d\ntemp_dir = %s\n"+
		"counter.enable = true\ncounter.port = %d\n", first, first+1, dir, first+2)
	for _, line := range settings {
		text += line + "\n"
	}
	config := filepath.Join(dir, "yrmcds.conf")
	require.NoError(tb, os.WriteFile(config, []byte(text), 0o600))
	cmd := exec.Command(yrmcdsd, "-f", config)
	require.NoError(tb, cmd.Start())
	tb.Cleanup(func() {
		require.NoError(tb, cmd.Process.Kill())
		_ = cmd.Wait() // killed
	})
	addr = fmt.Sprintf("127.0.0.1:%d", first+2)
	awaitListening(tb, addr)
	return addr, cmd.Process.Pid
}

// awaitListening waits until somebody listens on the address, without a connection to it: the
// original may count one that ends at once for ever.
func awaitListening(tb testing.TB, addr string) {
	tb.Helper()
	_, text, err := net.SplitHostPort(addr)
	require.NoError(tb, err)
	port, err := strconv.Atoi(text)
	require.NoError(tb, err)
	listening := regexp.MustCompile(fmt.Sprintf(`(?m)^ *\d+: [0-9A-F]+:%04X [0-9A-F]+:0000 0A `, port))
	require.Eventually(tb, func() bool {
		table, err := os.ReadFile("/proc/net/tcp")
		return err == nil && listening.Match(table)
	}, limit, 10*time.Millisecond, addr)
}
