package server

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// elected is a source that a test decides.
type elected struct {
	mu      sync.Mutex
	is      Standing
	changed func()
}

func (e *elected) standing() Standing {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.is
}

func (e *elected) watch(changed func()) { e.changed = changed }

func (e *elected) set(is Standing) {
	e.mu.Lock()
	e.is = is
	e.mu.Unlock()
	e.changed()
}

// openRoleCommand makes the command of a server with a decided role from the text of a script.
func openRoleCommand(t *testing.T, script string) (e *elected, c *roleCommand, dir string) {
	t.Helper()
	dir = t.TempDir()
	path := filepath.Join(dir, "hook")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\ncd "+dir+"\n"+script), 0o700))
	e = &elected{is: Standing{Role: RoleNone}}
	c = newRoleCommand(path, openStanding(e), logger{slog.New(slog.DiscardHandler)})
	return e, c, dir
}

func contents(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// While the program runs, the role changes thrice: it is told of the last change only.
func TestRoleCommandIsToldTheLatest(t *testing.T) {
	e, c, dir := openRoleCommand(t, `echo begin $1 $2 $3 $4 >>told; cat pipe >/dev/null; echo end >>told`+"\n")
	pipe, told := filepath.Join(dir, "pipe"), filepath.Join(dir, "told")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	c.start()
	c.start() // changes nothing
	require.Eventually(t, func() bool { return contents(told) == "begin none none 0\n" }, 30*time.Second, time.Millisecond)
	e.set(Standing{Role: RolePrimary, Term: 1, Primary: "a:1"})
	e.set(Standing{Role: RoleReplica, Term: 2, Primary: "b:1"})
	e.set(Standing{Role: RolePrimary, Term: 3, Primary: "a:1"})
	release := func() { require.NoError(t, os.WriteFile(pipe, nil, 0o600)) } // waits for the reader
	release()
	want := "begin none none 0\nend\nbegin primary none 3 a:1\n"
	require.Eventually(t, func() bool { return contents(told) == want }, 30*time.Second, time.Millisecond)
	release()
	c.close()
	require.Equal(t, want+"end\n", contents(told))
	require.EqualValues(t, 2, c.runs.Load())
	require.Zero(t, c.failures.Load())
}

// A program that hangs is killed together with what it has started.
func TestRoleCommandThatHangs(t *testing.T) {
	_, c, dir := openRoleCommand(t, "sleep 1000 & echo $! >child.part; mv child.part child; sleep 1000\n")
	var log bytes.Buffer
	c.log = logger{slog.New(slog.NewTextHandler(&log, nil))}
	c.limit = 5 * time.Second // within which the script must have written child
	c.start()
	c.close()
	require.EqualValues(t, 1, c.failures.Load())
	require.Contains(t, log.String(), "killed after 5s, its time limit")
	var child int
	_, err := fmt.Sscan(contents(filepath.Join(dir, "child")), &child)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // it is gone, or a zombie that its new parent has not asked for
		stat := contents(fmt.Sprintf("/proc/%d/stat", child))
		return stat == "" || strings.Contains(stat, ") Z ")
	}, 30*time.Second, time.Millisecond)
}

func TestStandingTellsOfEachChangeOnce(t *testing.T) {
	e := &elected{is: Standing{Role: RoleNone}}
	s := openStanding(e)
	first, changed := s.look()
	e.changed() // nothing has changed
	again, same := s.look()
	require.Equal(t, first, again)
	require.Equal(t, changed, same)
	e.set(Standing{Role: RolePrimary, Term: 1})
	<-changed
	is, _ := s.look()
	require.Equal(t, RolePrimary, is.Role)
	require.False(t, is.Since.Before(first.Since))
}

func TestRoleCommandIsChecked(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "hook")
	require.NoError(t, checkRoleCommand(""))
	require.ErrorContains(t, checkRoleCommand(path), "name a program")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600))
	require.ErrorContains(t, checkRoleCommand(path), "permission denied")
	require.NoError(t, os.Chmod(path, 0o700))
	require.NoError(t, checkRoleCommand(path))
	c := DefaultConfig()
	c.Daemon, c.OnRole = true, "hook"
	require.ErrorContains(t, c.checkDaemonPaths(), "a daemon can accept absolute path only")
}
