package tutorial

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// comparison reports whether an output is the output shown.
type comparison func(shown []string, output string) bool

// play does one step and compares its output.
func (s *shell) play(t *testing.T, st step, compare comparison) {
	t.Helper()
	line, background := strings.CutSuffix(st.cmd, " &")
	switch {
	case st.file != "":
		path := filepath.Join(s.dir, st.file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(s.names.Replace(st.text)), 0o644))
	case background:
		j := s.start(t, line)
		s.await(t, st, fitsBeginning, func() string { return s.back.Replace(j.out.String()) })
	case strings.Contains(line, " -ssname "):
		s.signal(t, st)
	case readsOnly(line):
		s.await(t, st, compare, func() string { return s.run(t, line) })
	default:
		if got := s.run(t, line); !compare(st.out, got) {
			fail(t, st, got)
		}
	}
}

func fail(t *testing.T, st step, got string) {
	t.Helper()
	t.Fatalf("line %d: $ %s\n--- shown:\n%s\n--- printed:\n%s", st.line, st.cmd, strings.Join(st.out, "\n"), got)
}

// await repeats a command that only reads until it prints the output shown.
func (s *shell) await(t *testing.T, st step, compare comparison, read func() string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		got := read()
		if compare(st.out, got) {
			return
		}
		if time.Now().After(deadline) {
			fail(t, st, got)
		}
		<-time.After(pollEvery)
	}
}

// signal repeats a command that sends a signal until the job that waits for the signal has ended:
// nobody can see from outside when the job begins to wait.
func (s *shell) signal(t *testing.T, st step) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		if got := s.run(t, st.cmd); !fits(st.out, got) {
			fail(t, st, got)
		}
		j := s.waiting()
		if j == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("line %d: $ %s\n%q did not get the signal", st.line, st.cmd, j.line)
		}
		<-time.After(pollEvery)
	}
}

// reading is the commands that change nothing.
var reading = regexp.MustCompile(`^(cat|ls|head|tail|grep|ktremotemgr (get|list|inform|match|regex|report|getbulk|cluster( -port [0-9]+)? status)|curl [^-]*("|')?http\S*|curl -I \S*)( |$)`)

// readsOnly reports whether a command may be repeated.
func readsOnly(line string) bool {
	changes := regexp.MustCompile(`rpc/(set|add|replace|append|incr|cas|remove|seize|clear)|ktremotemgr (get|list) .*-rm|>`)
	return reading.MatchString(line) && !changes.MatchString(line)
}

func TestReadsOnly(t *testing.T) {
	for line, want := range map[string]bool{
		"ktremotemgr get -pt japan":                            true,
		"ktremotemgr get -rm japan":                            false,
		"ktremotemgr set japan tokyo":                          false,
		"ktremotemgr getbulk a b":                              true,
		"ktremotemgr cluster -port 1979 status":                true,
		"ktremotemgr cluster require 1":                        false,
		"curl http://localhost:1978/japan":                     true,
		`curl "http://localhost:1978/rpc/get?key=japan"`:       true,
		`curl "http://localhost:1978/rpc/set?key=japan"`:       false,
		`curl "http://localhost:1978/rpc/increment?key=japan"`: false,
		"curl -X PUT -d x http://localhost:1978/japan":         false,
		"ls kt.log":        true,
		"ls > kt.log":      false,
		"cat kt.log":       true,
		"catch it":         false,
		"rm x":             false,
		"kill $(cat kt)":   false,
		"ktserver old.kch": false,
	} {
		require.Equal(t, want, readsOnly(line), line)
	}
}
