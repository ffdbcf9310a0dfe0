package klog

import (
	"io"
	"log/slog"
)

// Format is how log lines are written.
type Format int

const (
	// Original is the established format of this package.
	Original Format = iota
	// Text is that of slog.TextHandler: time=... level=SYSTEM msg="..." and attributes.
	Text
	// JSON is an object per line: time, level, msg and attributes.
	JSON
)

// New returns a handler that writes the records of least level and above to w in a format, with one Write per line. The level may
// change while the handler is used. w need not be safe for many goroutines; its errors are ignored.
func New(f Format, w io.Writer, least slog.Leveler) slog.Handler {
	o := &slog.HandlerOptions{Level: least, ReplaceAttr: nameLevel}
	switch f {
	case Text:
		return slog.NewTextHandler(w, o)
	case JSON:
		return slog.NewJSONHandler(w, o)
	}
	return NewHandler(w, least)
}

// nameLevel gives levels the same names in every format.
func nameLevel(groups []string, a slog.Attr) slog.Attr {
	if level, ok := a.Value.Any().(slog.Level); ok && a.Key == slog.LevelKey && len(groups) == 0 {
		a.Value = slog.StringValue(kind(level))
	}
	return a
}
