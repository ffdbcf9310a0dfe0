package timed

import (
	"context"
	"fmt"
	"io"
	"log/slog"
)

// warnings prints what the engine logs, as far as a person has to know it. It implements slog.Handler.
type warnings struct{ out io.Writer }

// Enabled tells whether a level is worth printing.
func (warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle prints one line.
func (w warnings) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		return true
	})
	_, err := fmt.Fprintf(w.out, "%s: %s: %s\n", program, map[bool]string{true: "error", false: "warning"}[r.Level >= slog.LevelError], line)
	return err
}

// WithAttrs returns the handler itself: the engine names everything in its messages.
func (w warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup returns the handler itself.
func (w warnings) WithGroup(string) slog.Handler { return w }
