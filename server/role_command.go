package server

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gotycoon/internal/rescue"
)

// roleCommandTime is how long the command of -on-role may run.
const roleCommandTime = 30 * time.Second

// roleCommand runs the program of -on-role when the server has begun to serve, and after each
// change of its standing: a program that moves a virtual IP address, changes a name, or tells
// somebody.
//
//	PROGRAM ROLE FORMER TERM PRIMARY
//
// It is started without a shell, and like the commands of synchronize (-cmd) it inherits the
// server's environment, working directory and output. What its arguments say is in its environment
// as well: KTSERVER_ROLE, KTSERVER_FORMER_ROLE, KTSERVER_TERM and KTSERVER_PRIMARY.
//
// One goroutine runs the program, so that two calls never overtake each other, and no part of the
// server waits for it. When several changes come while it runs, it is told of the last one only:
// then FORMER is the role that it was told of before. It is told that a server has become a replica
// even if the server stops at once, since the address must not stay there.
type roleCommand struct {
	path     string // empty: there is none
	standing *standing
	limit    time.Duration
	log      logger

	runs, failures atomic.Int64

	quit chan struct{} // nil before start
	done sync.WaitGroup
}

func newRoleCommand(path string, s *standing, log logger) *roleCommand {
	return &roleCommand{path: path, standing: s, limit: roleCommandTime, log: log}
}

// start begins to watch the standing; calls after the first one change nothing.
func (c *roleCommand) start() {
	if c.path == "" || c.quit != nil {
		return
	}
	c.quit = make(chan struct{})
	c.done.Go(func() { _ = rescue.Do(c.log.Logger, "the command of -on-role", c.watch) })
}

// close returns when the program has been told of the present standing, and has ended.
func (c *roleCommand) close() {
	if c.quit != nil {
		close(c.quit)
		c.done.Wait()
	}
}

// watch runs the program until the server stops.
func (c *roleCommand) watch() {
	told := Standing{Role: RoleNone}
	for first := true; ; {
		is, changed := c.standing.look()
		if first || is != told {
			c.run(is, told.Role)
			told, first = is, false
			continue
		}
		select {
		case <-changed:
		case <-c.quit:
			if now, _ := c.standing.look(); now == told {
				return
			}
		}
	}
}

// run runs the program once. What goes wrong is in the log, and the server goes on.
func (c *roleCommand) run(is Standing, former Role) {
	c.runs.Add(1)
	c.log.system("role: %s: running %s", is.text(), c.path)
	if err := c.execute(is, former); err != nil {
		c.failures.Add(1)
		c.log.error("the command of -on-role has failed, and is not run again before the next change: role=%s path=%s: %v", is.Role, c.path, err)
	}
}

func (c *roleCommand) execute(is Standing, former Role) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.limit)
	defer cancel()
	term := strconv.FormatUint(is.Term, 10)
	cmd := exec.CommandContext(ctx, c.path, string(is.Role), string(former), term, is.Primary)
	cmd.Env = append(os.Environ(), "KTSERVER_ROLE="+string(is.Role), "KTSERVER_FORMER_ROLE="+string(former), "KTSERVER_TERM="+term,
		"KTSERVER_PRIMARY="+is.Primary)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// With a process group of its own, whatever the program has started is killed with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("killed after %v, its time limit", c.limit)
	}
	return err
}

// checkRoleCommand refuses a program that cannot be run.
func checkRoleCommand(path string) error {
	if path == "" {
		return nil
	}
	if _, err := exec.LookPath(path); err != nil {
		return fmt.Errorf("-on-role %s: name a program that this user may run: %w", path, err)
	}
	return nil
}
