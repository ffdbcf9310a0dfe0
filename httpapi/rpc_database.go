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

	"gotycoon/internal/klog"
	"gotycoon/ulog"
)

// Procedures on a whole database.

func rpcStatus(s *Session) error {
	rows, err := s.call.db.Status(&s.c.Owed)
	if err != nil {
		return err
	}
	s.out.addMap(rows)
	return nil
}

func rpcClear(s *Session) error { return s.call.db.Clear(&s.c.Owed) }

func rpcVacuum(s *Session) error {
	if err := s.beginLong(); err != nil {
		return err
	}
	return s.call.db.Vacuum(s.heed, s.in.intOr("step", 0))
}

// rpcSynchronize writes the database to its file and then runs a command, if the call names one.
// Earlier replies leave first, because it may take long.
func rpcSynchronize(s *Session) error {
	if s.c.Flush() != nil {
		return errBroken
	}
	var post func(path string, ts ulog.Stamp) error
	if name, _ := s.in.Get("command"); len(name) > 0 {
		command, limit := string(name), s.h.backupLimit()
		post = func(path string, ts ulog.Stamp) error { return s.h.runCommand(command, path, min(ts, limit)) }
	}
	return s.call.db.Synchronize(s.in.Has("hard"), post)
}

// backupLimit returns the largest time stamp that a backup may be given which begins now: the
// backup of a follower is complete up to the follower's position in the master's log. Without a
// master there is no limit.
func (h *Handler) backupLimit() ulog.Stamp {
	if h.opts.Follower == nil {
		return math.MaxUint64
	}
	at, following := h.opts.Follower.Position()
	if !following {
		return math.MaxUint64
	}
	return at
}

// errCommandName refuses a command outside the command directory.
var errCommandName = errors.New("invalid command name")

// runCommand runs a command of synchronize, such as a backup script, through the shell as
// "CMDDIR/NAME" "PATH" "TIMESTAMP". The command inherits the server's environment, working
// directory and output.
func (h *Handler) runCommand(name, path string, ts ulog.Stamp) error {
	log := h.opts.Logger
	if name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		log.Info("invalid command name: " + name)
		return fmt.Errorf("%w: %s", errCommandName, name)
	}
	what := fmt.Sprintf("%s %q", name, path)
	log.Log(context.Background(), klog.LevelSystem, "executing: "+what)
	program := h.opts.CmdDir + string(filepath.Separator) + name
	line := fmt.Sprintf("%s %s %s", quote(program), quote(path), quote(fmt.Sprintf("%020d", ts)))
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
