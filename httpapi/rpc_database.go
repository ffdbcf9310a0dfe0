package httpapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/internal/klog"
	"gotycoon/ulog"
)

// Procedures on a whole database.

func rpcStatus(c *call) error {
	rows, err := c.db.Status(&c.conn.Owed)
	if err != nil {
		return err
	}
	c.out.addMap(rows)
	return nil
}

func rpcClear(c *call) error { return c.db.Clear(&c.conn.Owed) }

func rpcVacuum(c *call) error {
	if err := c.beginLong(); err != nil {
		return err
	}
	return c.db.Vacuum(c.heed, c.in.intOr("step", 0))
}

// rpcCompact begins a compaction, or joins the one that is under way. The call of a client that
// waits may end before the compaction: because of wait, of -answer-time, or because the client has
// gone. The compaction goes on.
func rpcCompact(c *call) error {
	if err := c.beginLong(); err != nil {
		return err
	}
	if c.in.Has("abort") {
		return c.db.AbortCompaction(c.heed)
	}
	if !c.in.Has("look") {
		if err := c.db.Compact(); err != nil {
			return err
		}
	}
	st, err := c.db.AwaitCompaction(c.heed, time.Duration(min(max(0, c.in.intOr("wait", 0)), mostWait))*time.Second)
	if err != nil {
		return err
	}
	c.out.addMap(st.Rows())
	return nil
}

const mostWait = 1 << 30 // seconds

// rpcSynchronize writes the database to its file and then runs a command, if the call names one.
// Earlier replies leave first, because it may take long.
func rpcSynchronize(c *call) error {
	if c.conn.Flush() != nil {
		return errBroken
	}
	var post func(path string, ts ulog.Stamp) error
	if name, _ := c.in.Get("command"); len(name) > 0 {
		command, limit := string(name), c.backupLimit()
		post = func(path string, ts ulog.Stamp) error { return c.runCommand(command, path, min(ts, limit)) }
		if c.db.Info().Shared { // a file is made first, which may take long
			if err := c.findCommand(command); err != nil {
				return errors.Join(dberr.ErrPostproc, err)
			}
		}
	}
	return c.db.Synchronize(c.in.Has("hard"), post)
}

// backupLimit returns the largest time stamp that a backup may be given which begins now: the
// backup of a follower is complete up to the follower's position in the master's log. Without a
// master there is no limit.
func (c *call) backupLimit() ulog.Stamp {
	if c.opts.Follower == nil {
		return math.MaxUint64
	}
	at, following := c.opts.Follower.Position()
	if !following {
		return math.MaxUint64
	}
	return at
}

// errCommandName refuses a command outside the command directory.
var errCommandName = errors.New("invalid command name")

// checkCommand refuses what is not the name of a file in the command directory.
func (c *call) checkCommand(name string) error {
	if name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		c.opts.Logger.Info("invalid command name: " + name)
		return fmt.Errorf("%w: %s", errCommandName, name)
	}
	return nil
}

// findCommand returns why a command could not be run.
func (c *call) findCommand(name string) error {
	if err := c.checkCommand(name); err != nil {
		return err
	}
	_, err := exec.LookPath(c.commandPath(name))
	if err != nil {
		c.opts.Logger.Error("execution failed: " + err.Error())
	}
	return err
}

// commandPath is the file of a command.
func (c *call) commandPath(name string) string {
	return c.opts.CmdDir + string(filepath.Separator) + name
}

// runCommand runs a command of synchronize, such as a backup script, through the shell as
// "CMDDIR/NAME" "PATH" "TIMESTAMP". The command inherits the server's environment, working
// directory and output.
func (c *call) runCommand(name, path string, ts ulog.Stamp) error {
	log := c.opts.Logger
	if err := c.checkCommand(name); err != nil {
		return err
	}
	what := fmt.Sprintf("%s %q", name, path)
	log.Log(context.Background(), klog.LevelSystem, "executing: "+what)
	line := fmt.Sprintf("%s %s %s", quote(c.commandPath(name)), quote(path), quote(fmt.Sprintf("%020d", ts)))
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		log.Error("execution failed: " + what)
		return fmt.Errorf("run %s: %w", name, err)
	}
	return nil
}

// quote puts an argument into double quotes for the shell.
func quote(arg string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(arg) {
		if strings.IndexByte("\"\\$`!", arg[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(arg[i])
	}
	b.WriteByte('"')
	return b.String()
}
