package httpapi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gotycoon/internal/klog"
	"gotycoon/ulog"
)

// errCommandName refuses a command outside the command directory.
var errCommandName = errors.New("invalid command name")

// runCommand runs a command of synchronize, such as a backup script, through the shell as
// "CMDDIR/NAME" "PATH" "TIMESTAMP". It inherits the server's environment, working directory and output.
func (h *Handler) runCommand(name, path string, ts ulog.Stamp) error {
	log := h.opts.Logger
	if name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		log.Info("invalid command name: " + name)
		return fmt.Errorf("%w: %s", errCommandName, name)
	}
	what := fmt.Sprintf("%s %q", name, path)
	log.Log(context.Background(), klog.LevelSystem, "executing: "+what)
	line := fmt.Sprintf("%s %s %s", quote(h.opts.CmdDir+string(filepath.Separator)+name), quote(path), quote(fmt.Sprintf("%020d", ts)))
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
