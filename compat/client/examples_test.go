package client_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/internal/freeport"
	"gotycoon/server"
)

const joinScript = `function join(input, output)
  output.text = input.first .. " " .. input.second
  return __kyototycoon__.RVSUCCESS
end
`

// The examples of the package page are run by the tests of their own module, which are told by the
// environment where a server is.
func TestExamplesOfThePackagePage(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "join.lua")
	require.NoError(t, os.WriteFile(script, []byte(joinScript), 0o600))
	cfg := server.DefaultConfig()
	cfg.Databases = []string{":", "tree#type=%"}
	cfg.UpdateLog, cfg.ServerID = filepath.Join(dir, "ulog"), 1
	cfg.Script.Path = script
	ports := []int{freeport.Take(t), freeport.Take(t), freeport.Take(t), freeport.Take(t)}
	cfg.Services = server.ServicesConfig{LockPort: ports[0], CounterPort: ports[1], SequencePort: ports[2], QuotaPort: ports[3],
		Database: filepath.Join(dir, "services.kct")}
	s := startServer(cfg)
	defer s.stop()
	addrs := []string{s.addr}
	for _, port := range ports {
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", port))
	}
	args := []string{"-C", "../../client", "test", "-count=1", "-v", "-vet=off", "-timeout", "60s", "-run", "^Example"}
	c := client.New(s.addr, client.Options{})
	defer c.Close()
	procedures, err := c.DB("").Call(t.Context(), "help")
	require.NoError(t, err)
	if _, ok := procedures["watch"]; !ok {
		args = append(args, "-skip", "^ExampleDB_Watch$")
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, ".")...)
	cmd.Env = append(os.Environ(), "GOTYCOON_EXAMPLES="+strings.Join(addrs, " "))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, name := range []string{"Example", "ExampleDB_Touch", "ExampleClient_Follow", "ExampleLocks", "ExampleCounters", "ExampleSequence", "ExampleQuota"} {
		require.Contains(t, string(out), "--- PASS: "+name+" (")
	}
}
