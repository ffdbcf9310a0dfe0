package klog_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/klog"
)

// record hands one line with a fixed time to a handler and returns what it wrote.
func record(t *testing.T, at time.Time, level slog.Level, text string, attrs ...slog.Attr) string {
	t.Helper()
	var out bytes.Buffer
	r := slog.NewRecord(at, level, text, 0)
	r.AddAttrs(attrs...)
	require.NoError(t, klog.NewHandler(&out, slog.LevelDebug).Handle(t.Context(), r))
	return out.String()
}

func TestLineFormat(t *testing.T) {
	saved := time.Local
	t.Cleanup(func() { time.Local = saved })
	at := time.Date(2026, 11, 21, 3, 5, 10, 288856999, time.UTC)
	for _, row := range []struct {
		name string
		zone *time.Location
		want string
	}{
		{"no offset prints Z", time.UTC, "2026-11-21T03:05:10.288856Z: [INFO]: text\n"},
		{"east of Greenwich", time.FixedZone("", 9*3600), "2026-11-21T12:05:10.288856+09:00: [INFO]: text\n"},
		{"west, with minutes", time.FixedZone("", -(3*3600 + 1800)), "2026-11-20T23:35:10.288856-03:30: [INFO]: text\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			time.Local = row.zone
			require.Equal(t, row.want, record(t, at, slog.LevelInfo, "text"))
		})
	}
}

func TestKinds(t *testing.T) {
	for level, want := range map[slog.Level]string{
		slog.LevelDebug:  "[DEBUG]: x\n",
		slog.LevelInfo:   "[INFO]: x\n",
		klog.LevelSystem: "[SYSTEM]: x\n",
		slog.LevelError:  "[ERROR]: x\n",
	} {
		_, got, _ := strings.Cut(record(t, time.Now(), level, "x"), ": ")
		require.Equal(t, want, got)
	}
}

func TestAttributes(t *testing.T) {
	line := record(t, time.Now(), slog.LevelInfo, "x", slog.Int("n", 3), slog.Group("g", slog.String("k", "v")))
	require.True(t, strings.HasSuffix(line, "]: x n=3 g.k=v\n"), line)

	var out bytes.Buffer
	log := slog.New(klog.NewHandler(&out, slog.LevelDebug)).With("a", 1).WithGroup("g").With("b", 2)
	log.Info("x", "c", 3)
	require.True(t, strings.HasSuffix(out.String(), "]: x a=1 g.b=2 g.c=3\n"), out.String())
}

func TestClientsCannotForgeLines(t *testing.T) {
	line := record(t, time.Now(), slog.LevelInfo, "GET /a\r\n2026-11-21T03:05:10.288856Z: [SYSTEM]: x")
	require.Equal(t, 1, strings.Count(line, "\n"))
}

func TestLevels(t *testing.T) {
	for _, row := range []struct {
		least slog.Level
		want  int
	}{
		{slog.LevelDebug, 4}, {slog.LevelInfo, 3}, {klog.LevelSystem, 2}, {slog.LevelError, 1}, {klog.LevelSilent, 0},
	} {
		var out bytes.Buffer
		log := slog.New(klog.NewHandler(&out, row.least))
		log.Debug("x")
		log.Info("x")
		log.Log(t.Context(), klog.LevelSystem, "x")
		log.Error("x")
		require.Equal(t, row.want, strings.Count(out.String(), "\n"), row.least)
	}
}

// countingWriter fails the test when two writes overlap, which the race detector sees too.
type countingWriter struct{ writes, lines int }

func (w *countingWriter) Write(p []byte) (int, error) {
	w.writes++
	w.lines += bytes.Count(p, []byte("\n"))
	return len(p), nil
}

func TestOneWritePerLineFromManyGoroutines(t *testing.T) {
	var out countingWriter
	log := slog.New(klog.NewHandler(&out, slog.LevelInfo))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				log.Info(fmt.Sprintf("%d %d", g, i))
			}
		})
	}
	wg.Wait()
	require.Equal(t, countingWriter{800, 800}, out)
}

func TestDisabledLinesCostNoMemory(t *testing.T) {
	log := slog.New(klog.NewHandler(io.Discard, klog.LevelSystem))
	require.Zero(t, testing.AllocsPerRun(100, func() { log.Info("x") }))
}

func BenchmarkLine(b *testing.B) {
	log := slog.New(klog.NewHandler(io.Discard, slog.LevelInfo))
	b.ReportAllocs()
	for b.Loop() {
		log.Info("(127.0.0.1:40000): POST /rpc/set HTTP/1.1: 200")
	}
}
