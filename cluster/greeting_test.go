package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// said is a log that a test reads while others write.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// String is what was written so far.
func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestProgramsWithAVersionInCommonHearEachOther(t *testing.T) {
	for _, v := range []greeting{{1, 1}, {2, 1}} {
		p := newPair(t)
		p.a.versions = v
		p.b.handle = func(string, string, json.RawMessage) (any, error) { return nil, nil }
		require.NoError(t, p.a.call(t.Context(), "b", "x", nil, new(any)))
	}
}

// A later program that gave up version 1 does not take part, and both logs say what to do.
func TestAProgramOfAnotherVersionIsNotHeard(t *testing.T) {
	p := newPair(t)
	var a, b said
	p.a.log, p.b.log = slog.New(slog.NewTextHandler(&a, nil)), slog.New(slog.NewTextHandler(&b, nil))
	p.a.versions = greeting{Newest: 3, Oldest: 2}
	p.b.handle = func(string, string, json.RawMessage) (any, error) {
		t.Error("a call was carried out")
		return nil, nil
	}
	require.Error(t, p.a.call(t.Context(), "b", "x", nil, new(any)))
	const told = "is not heard: its program speaks the versions"
	for log, want := range map[*said]string{
		&a: "b " + told + " 1 to 1 of the cluster's messages, and that of this server 2 to 3: update that member",
		&b: "a " + told + " 2 to 3 of the cluster's messages, and that of this server 1 to 1: update this server",
	} {
		require.Eventually(t, func() bool { return strings.Contains(log.String(), want) }, 10*time.Second, time.Millisecond, "%s", log)
	}
	require.Error(t, p.a.call(context.Background(), "b", "x", nil, new(any)), "also on the next connection")
}
