package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"gotycoon/internal/klog"
)

// logger adds the formatting and the level of this package's lines.
type logger struct{ *slog.Logger }

func newLogger(format klog.Format, w io.Writer, level slog.Leveler) logger {
	return logger{slog.New(&panics{klog.New(format, w, level), new(atomic.Int64)})}
}

func (l logger) info(format string, args ...any)   { l.print(slog.LevelInfo, format, args) }
func (l logger) system(format string, args ...any) { l.print(klog.LevelSystem, format, args) }
func (l logger) error(format string, args ...any)  { l.print(slog.LevelError, format, args) }

// panics returns how many panics the log has seen.
func (l logger) panics() int64 { return l.Handler().(*panics).count.Load() }

func (l logger) print(level slog.Level, format string, args []any) {
	if l.Enabled(context.Background(), level) {
		l.Log(context.Background(), level, fmt.Sprintf(format, args...))
	}
}

// sink is where log lines go: a file or standard output.
type sink struct {
	io.Writer
	file *klog.File // nil: standard output
}

func openSink(path string, stdout io.Writer) (*sink, error) {
	if path == "" || path == "-" {
		return &sink{Writer: stdout}, nil
	}
	f, err := klog.OpenFile(path)
	if err == nil {
		err = f.KeepCrash()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: could not open the log file", path)
	}
	return &sink{Writer: f, file: f}, nil
}

// reopen continues in a new file where somebody has renamed the old one.
func (s *sink) reopen(log logger) {
	if s.file == nil {
		return
	}
	if err := s.file.Reopen(); err != nil {
		log.error("reopening the log file: %v", err)
	}
}

// Close closes the file.
func (s *sink) Close() {
	if s.file != nil {
		_ = s.file.Close() // nobody to tell
	}
}

// panics counts the panics that package rescue has seen. It is a handler of log lines, because
// every part of the server that may panic has the log, see rescue.Counter.
type panics struct {
	slog.Handler
	count *atomic.Int64
}

// Panicked implements rescue.Counter.
func (p *panics) Panicked() { p.count.Add(1) }

// WithAttrs implements slog.Handler.
func (p *panics) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &panics{p.Handler.WithAttrs(attrs), p.count}
}

// WithGroup implements slog.Handler.
func (p *panics) WithGroup(name string) slog.Handler {
	return &panics{p.Handler.WithGroup(name), p.count}
}

// instant is a moment as lines and probes have it.
func instant(at time.Time) string { return at.UTC().Format(time.RFC3339) }
