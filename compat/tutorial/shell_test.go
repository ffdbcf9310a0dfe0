package tutorial

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/compat/ktproc"
	"gotycoon/internal/freeport"
	"gotycoon/internal/needs"
)

const (
	standIns  = "1978 1979 1980 1981 1982 1983 1990 11211 11215 11400" // ports that stand for free ports
	patience  = 60 * time.Second                                       // until an output must be as shown
	pollEvery = 20 * time.Millisecond
	longest   = 60 * time.Second // of one command
)

// shell runs commands in a directory in which everything is as a reader of a tutorial has it.
type shell struct {
	dir   string
	ports map[string]string // as written → in use
	names *replacer         // written → in use
	back  *replacer         // in use → written
	env   []string
	jobs  []*job
}

// programs are the paths of the commands of this module.
type programs struct{ server, manager, timed, util, replsql string }

func build(t *testing.T) programs {
	t.Helper()
	return programs{
		server: ktproc.BuildPlain(t, "ktserver"), manager: ktproc.BuildPlain(t, "ktremotemgr"),
		timed: ktproc.BuildPlain(t, "kttimedmgr"), util: ktproc.BuildPlain(t, "ktutilmgr"), replsql: ktproc.BuildOf(t, "../../tools/replsql", "./cmd/ktreplsql"),
	}
}

// newShell returns a shell with these programs. places are directories in the document that stand
// for temporary directories.
func newShell(t *testing.T, p programs, places ...string) *shell {
	t.Helper()
	needs.Program(t, "curl", "curl")
	s := &shell{dir: t.TempDir(), names: &replacer{}, back: &replacer{}, ports: map[string]string{}}
	for _, port := range strings.Fields(standIns) {
		s.ports[port] = strconv.Itoa(freeport.Take(t))
		s.rename(`\b`, port, s.ports[port])
	}
	for _, place := range places {
		require.NoError(t, os.MkdirAll(filepath.Join(s.dir, place), 0o755))
		s.rename("", place, s.dir+place)
	}
	// Programs with the race detector would wait a second each before they exit.
	s.env = append(os.Environ(), "TZ=UTC", "GORACE=atexit_sleep_ms=0", "PATH="+s.commands(t, p)+":"+os.Getenv("PATH"))
	t.Cleanup(func() { s.endJobs(t) })
	return s
}

// commands is a directory of commands that use this test's port where none is written, curl that
// shows no progress as on a terminal, and go that finds this module wherever it runs.
func (s *shell) commands(t *testing.T, p programs) string {
	t.Helper()
	dir, port := t.TempDir(), s.ports["1978"]
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	for name, script := range map[string]string{
		"ktserver":    fmt.Sprintf("[ \"$1\" = access ] && exec '%[1]s' \"$@\"\n[ \"$1\" = config ] && sub=$2 && shift 2 && exec '%[1]s' config \"$sub\" -port %[2]s \"$@\"\nexec '%[1]s' -port %[2]s \"$@\"", p.server, port),
		"ktremotemgr": fmt.Sprintf("case $1 in man|completion) exec '%[1]s' \"$@\" ;; esac\nsub=$1; shift\nexec '%[1]s' \"$sub\" -port %[2]s \"$@\"", p.manager, port),
		"kttimedmgr":  fmt.Sprintf("exec '%s' \"$@\"", p.timed),
		"ktutilmgr":   fmt.Sprintf("exec '%s' \"$@\"", p.util),
		"ktreplsql":   fmt.Sprintf("exec '%s' \"$@\"", p.replsql),
		"curl":        fmt.Sprintf("exec '%s' -sS \"$@\"", lookPath(t, "curl")),
		"go":          fmt.Sprintf("[ \"$1\" = run ] || exit 1\nhere=$PWD; cd '%s' && exec '%s' run \"$here/$2\"", root, lookPath(t, "go")),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	return dir
}

func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	require.NoError(t, err)
	return path
}

// command prepares a command line; its output goes to w.
func (s *shell) command(line string, w *output) *exec.Cmd {
	cmd := exec.Command("sh", "-c", s.names.Replace(line))
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env, w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // to end what it has started too
	return cmd
}

// run runs a command to its end and returns its output, with ports and places as in the document.
func (s *shell) run(t *testing.T, line string) string {
	t.Helper()
	s.awaitPort(t, line)
	var out output
	cmd := s.command(line, &out)
	require.NoError(t, cmd.Start())
	timer := time.AfterFunc(longest, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer timer.Stop()
	_ = cmd.Wait() // the output shows what went wrong
	s.noteDaemon(t, line)
	return s.back.Replace(out.String())
}
