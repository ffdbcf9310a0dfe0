package lock

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/metrics"
	"gotycoon/services"
)

// script is a connection that brings its lines again and again, one at a time, and drops what it is
// told.
type script struct {
	net.Conn
	lines []string
	at    int
}

func (s *script) Read(p []byte) (int, error) {
	line := s.lines[s.at%len(s.lines)]
	s.at++
	return copy(p, line), nil
}

func (s *script) Write(p []byte) (int, error)      { return len(p), nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// BenchmarkAnswer answers lines that arrive one at a time; the socket is not in it.
func BenchmarkAnswer(b *testing.B) {
	for name, lines := range map[string][]string{
		"lock":   {"lock key\n", "release key\n"},
		"fenced": {"lock-fenced key\n", "release key\n"},
		"status": {"status key\n"},
	} {
		b.Run(name, func(b *testing.B) {
			s, err := New(Options{Fences: &fakeFences{}, Options: services.Options{Meter: metrics.New(metrics.Options{})}})
			require.NoError(b, err)
			require.NoError(b, s.table.tokens.Lead())
			c := s.newConn(b.Context(), &script{lines: lines}, nil)
			c.begin()
			b.ReportAllocs()
			for b.Loop() {
				if c.answerAll() != nil || c.rest() != nil || c.read() != nil {
					b.Fatal("the connection ended")
				}
				c.begin()
			}
		})
	}
}

// BenchmarkQueue hands a lock that many wait for from one to the next: each iteration is a release
// and a lock.
func BenchmarkQueue(b *testing.B) {
	const sessions = 64
	t := newTable(bounds{keys: 1, names: 1 << 20, waiters: sessions, expires: 1000}, nil)
	steps, key := make([]step, sessions), []byte("key")
	for i := range steps {
		steps[i].by = &session{push: func() {}}
		t.lock(&steps[i], key, wish{max: 1, timeout: -1, expires: 120})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		st := &steps[i%sessions]
		t.release(st, key)
		st.deliver()
		t.lock(st, key, wish{max: 1, timeout: -1, expires: 120})
		clearLines(st.by)
	}
}

func clearLines(s *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own = s.own[:0]
	s.leave(s.lines[:0])
}
