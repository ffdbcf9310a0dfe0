package election

import (
	"context"
	"fmt"
	"log/slog"
)

// raftLogger gives raft's messages to the server's log. The library tells every step of an election
// as information, which is detail here.
type raftLogger struct{ log *slog.Logger }

func (l raftLogger) write(level slog.Level, text func() string) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, "election: "+text())
	}
}

func (l raftLogger) print(level slog.Level, v []any) {
	l.write(level, func() string { return fmt.Sprint(v...) })
}

func (l raftLogger) printf(level slog.Level, f string, v []any) {
	l.write(level, func() string { return fmt.Sprintf(f, v...) })
}

func (l raftLogger) Debug(v ...any)              { l.print(slog.LevelDebug, v) }
func (l raftLogger) Debugf(f string, v ...any)   { l.printf(slog.LevelDebug, f, v) }
func (l raftLogger) Info(v ...any)               { l.print(slog.LevelDebug, v) }
func (l raftLogger) Infof(f string, v ...any)    { l.printf(slog.LevelDebug, f, v) }
func (l raftLogger) Warning(v ...any)            { l.print(slog.LevelInfo, v) }
func (l raftLogger) Warningf(f string, v ...any) { l.printf(slog.LevelInfo, f, v) }
func (l raftLogger) Error(v ...any)              { l.print(slog.LevelError, v) }
func (l raftLogger) Errorf(f string, v ...any)   { l.printf(slog.LevelError, f, v) }

// The library calls the following when going on would break what was agreed.

func (l raftLogger) Fatal(v ...any)            { panic(fmt.Sprint(v...)) }
func (l raftLogger) Fatalf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }
func (l raftLogger) Panic(v ...any)            { panic(fmt.Sprint(v...)) }
func (l raftLogger) Panicf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }
