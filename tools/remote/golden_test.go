package remote_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ports of the recordings.
const (
	portMain     = "20250" // server with an update log
	portBare     = "20251" // server without options
	portSegments = "20252" // server on a copy of the recorded update log
	portNobody   = "20299"
)

// run is one recorded run of the original.
type run struct {
	Argv   []string
	Stdin  string `json:"stdin"` // Base64
	Exit   int
	Stdout string `json:"stdout_b64"`
	Stderr string `json:"stderr_b64"`
	Note   string
}

// load reads the recorded runs of a file.
func load(t *testing.T, name string) []run {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "ktremotemgr-"+name+".jsonl"))
	require.NoError(t, err)
	var runs []run
	for dec := json.NewDecoder(bytes.NewReader(data)); dec.More(); {
		var r run
		require.NoError(t, dec.Decode(&r))
		runs = append(runs, r)
	}
	return runs
}

// title names a run in messages.
func (r run) title() string { return strings.Join(r.Argv[1:], " ") }

// result is what the original printed.
func (r run) result(t *testing.T) result {
	t.Helper()
	return result{exit: r.Exit, stdout: decode(t, r.Stdout), stderr: decode(t, r.Stderr)}
}

func decode(t *testing.T, text string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	return string(b)
}

// option returns the value of an option of the run, "" where it is not there.
func (r run) option(name string) string {
	for i, arg := range r.Argv[:len(r.Argv)-1] {
		if arg == name {
			return r.Argv[i+1]
		}
	}
	return ""
}

// has reports whether an argument is there.
func (r run) has(arg string) bool {
	for _, a := range r.Argv {
		if a == arg {
			return true
		}
	}
	return false
}

// withPorts is the recorded command line with other ports.
func withPorts(r run, ports map[string]string) []string {
	args := append([]string{}, r.Argv[1:]...)
	for i, arg := range args {
		if port, ok := ports[arg]; ok {
			args[i] = port
		}
	}
	return args
}

// replay runs a recorded command line against the servers behind ports, and puts the recorded ports
// into the output.
func replay(t *testing.T, r run, ports map[string]string) result {
	t.Helper()
	out := command(t, decode(t, r.Stdin), withPorts(r, ports)...)
	for recorded, port := range ports {
		out.stderr = strings.ReplaceAll(out.stderr, ":"+port+":", ":"+recorded+":")
	}
	return out
}
