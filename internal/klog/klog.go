// Package klog writes log lines in the server's established format, so that scripts which read them
// go on working:
//
//	2026-11-21T03:05:10.288856Z: [SYSTEM]: text
//
// The time is local, with microseconds and a zone suffix. The kinds are DEBUG, INFO, SYSTEM and
// ERROR.
package klog

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

const (
	// LevelSystem is the level of lines about the life of the server: start, stop, opening and
	// closing of databases. It is above Info, the level of single connections and requests.
	LevelSystem = slog.LevelInfo + 2

	// LevelSilent as the least level of a handler suppresses every line.
	LevelSilent slog.Level = 1 << 10
)

// timeLayout prints Z for a zone without offset, else +hh:mm or -hh:mm.
const timeLayout = "2006-01-02T15:04:05.000000Z07:00"

func kind(level slog.Level) string {
	switch {
	case level < slog.LevelInfo:
		return "DEBUG"
	case level < LevelSystem:
		return "INFO"
	case level < slog.LevelError:
		return "SYSTEM"
	}
	return "ERROR"
}

// Format is the format of log lines.
type Format int

const (
	// Original is the established format of this package.
	Original Format = iota
	// Text is the format of slog.TextHandler: time=... level=SYSTEM msg="..." and attributes.
	Text
	// JSON is an object per line: time, level, msg and attributes.
	JSON
)

// New returns a handler that writes records of level least and above to w, in a format and with one
// Write per line. The level may change while the handler is in use. Many goroutines may use the
// handler; w need not allow that. Errors of w are ignored.
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

// nameLevel gives the levels the same names in every format.
func nameLevel(groups []string, a slog.Attr) slog.Attr {
	if level, ok := a.Value.Any().(slog.Level); ok && a.Key == slog.LevelKey && len(groups) == 0 {
		a.Value = slog.StringValue(kind(level))
	}
	return a
}

// handler is a slog.Handler. Handlers made from a handler by WithAttrs and WithGroup share its
// output.
type handler struct {
	out    *output
	level  slog.Leveler
	attrs  string // attributes of WithAttrs, ready to be appended to the text
	prefix string // of the keys of further attributes: the names of the open groups
}

// output is the destination of the lines. Each line is one Write.
type output struct {
	mu  sync.Mutex // protects the fields below
	w   io.Writer
	buf []byte // the present line
}

// NewHandler returns a handler that writes records of the given level and above to w in the format
// Original, with one Write per line. Many goroutines may use the handler; w need not allow that.
// Errors of w are ignored: there is nobody to report them to.
func NewHandler(w io.Writer, level slog.Leveler) slog.Handler {
	return &handler{out: &output{w: w}, level: level}
}

// Enabled reports whether lines of the level are written.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level.Level() }

// Handle writes one line: the record's message and after it " key=value" for each attribute.
func (h *handler) Handle(_ context.Context, r slog.Record) error {
	o := h.out
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf = appendHead(o.buf[:0], r.Time, r.Level)
	text := len(o.buf)
	o.buf = append(o.buf, r.Message...)
	o.buf = append(o.buf, h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		o.buf = append(o.buf, formatAttr(h.prefix, a)...)
		return true
	})
	blankBreaks(o.buf[text:])
	o.buf = append(o.buf, '\n')
	_, err := o.w.Write(o.buf)
	return err
}

// WithAttrs returns a handler whose lines all carry the attributes.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	d := *h
	for _, a := range attrs {
		d.attrs += formatAttr(h.prefix, a)
	}
	return &d
}

// WithGroup returns a handler that puts "name." before the keys of attributes.
func (h *handler) WithGroup(name string) slog.Handler {
	d := *h
	d.prefix += name + "."
	return &d
}

func appendHead(dst []byte, t time.Time, level slog.Level) []byte {
	dst = t.Local().AppendFormat(dst, timeLayout)
	dst = append(dst, ": ["...)
	dst = append(dst, kind(level)...)
	return append(dst, "]: "...)
}

func formatAttr(prefix string, a slog.Attr) string {
	v := a.Value.Resolve()
	if v.Kind() != slog.KindGroup {
		return " " + prefix + a.Key + "=" + v.String()
	}
	var b strings.Builder
	for _, m := range v.Group() {
		b.WriteString(formatAttr(prefix+a.Key+".", m))
	}
	return b.String()
}

// blankBreaks replaces line breaks by blanks. Text of a client may be in the line, and must not be
// able to forge further lines.
func blankBreaks(text []byte) {
	for i, c := range text {
		if c == '\n' || c == '\r' {
			text[i] = ' '
		}
	}
}

// File is a log file that can be renamed while the server runs: Reopen continues in a new file of
// the old name.
type File struct {
	path string

	mu      sync.Mutex // protects the fields below
	f       *os.File
	crashes bool // see KeepCrash
}

// OpenFile opens a log file for appending. It creates a missing file.
func OpenFile(path string) (*File, error) {
	f, err := openAppend(path)
	if err != nil {
		return nil, err
	}
	return &File{path: path, f: f}, nil
}

// Write appends p.
func (f *File) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.f.Write(p)
}

// Reopen opens the file's path again and closes the old file. After an error the old file stays in
// use.
func (f *File) Reopen() error {
	next, err := openAppend(f.path)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.f
	f.f = next
	if err := old.Close(); err != nil {
		return fmt.Errorf("close the old log file: %w", err)
	}
	return f.keepCrash()
}

// KeepCrash has the stacks of a crash of the process go into the file too. A panic that nobody has
// recovered goes to standard error otherwise, which a daemon does not have.
func (f *File) KeepCrash() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crashes = true
	return f.keepCrash()
}

// keepCrash is KeepCrash for a file that was opened again. mu is held.
func (f *File) keepCrash() error {
	if !f.crashes {
		return nil
	}
	return debug.SetCrashOutput(f.f, debug.CrashOptions{})
}

// Close closes the file. Later writes fail.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.crashes {
		_ = debug.SetCrashOutput(nil, debug.CrashOptions{}) // without a file there is nothing to fail
	}
	return f.f.Close()
}

func openAppend(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
}
