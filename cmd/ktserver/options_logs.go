package main

import (
	"log/slog"

	"gotycoon/internal/klog"
)

// defineLogs lists the options of log lines that the original does not have.
func (o *options) defineLogs() {
	levels := oneOf[slog.Level]{&o.LogLevel, []string{"debug", "info", "system", "error", "none"},
		[]slog.Level{slog.LevelDebug, slog.LevelInfo, klog.LevelSystem, slog.LevelError, klog.LevelSilent}}
	formats := oneOf[klog.Format]{&o.LogFormat, []string{"original", "text", "json"},
		[]klog.Format{klog.Original, klog.Text, klog.JSON}}
	o.flags.Var(formats, "log-format", "write log lines in this `format`: original, text (KEY=VALUE) or json (default original)")
	o.flags.Var(levels, "log-level", "least `kind` of log lines: debug, info, system, error, none; -li, -ls, -le and -lz set it too (default debug)")
}
