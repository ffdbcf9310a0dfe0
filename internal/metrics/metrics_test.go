package metrics

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBuckets(t *testing.T) {
	for i, ns := range bounds {
		require.Equal(t, i, bucketOf(ns), "a bound is in its own bucket")
		require.Equal(t, i+1, bucketOf(ns+1))
		require.Equal(t, i, bucketOf(ns-1))
	}
	require.Zero(t, bucketOf(0))
	require.Zero(t, bucketOf(-5))
	require.Equal(t, len(bounds), bucketOf(1<<62))
	for ns := int64(1); ns < 1<<40; ns += 1 + ns/7 {
		i := bucketOf(ns)
		require.True(t, i == len(bounds) || ns <= bounds[i])
		require.True(t, i == 0 || ns > bounds[i-1])
	}
	require.InDelta(t, 1e-6, Bounds()[0], 1e-12)
	require.InDelta(t, 10, Bounds()[len(bounds)-1], 1e-9)
}

// passing has its clock set forward by moving the start back.
func passing(m *Meter, d time.Duration) { m.start = m.start.Add(-d) }

func TestTimesOfABatch(t *testing.T) {
	m, p := New(Options{}), NewProtocol("p", "get", "set")
	r := m.NewRecorder("")
	r.Idle()
	r.Arrived()
	passing(m, 3*time.Millisecond)
	r.Note(p, 0, false)
	r.Note(p, 0, true)
	r.Leave() // waiting for the rest of the third request
	passing(m, time.Hour)
	r.Arrived()
	passing(m, 3*time.Millisecond)
	r.Note(p, 1, false)
	r.Done()
	r.Done() // nothing more
	commands := p.Commands()
	require.Equal(t, "get", commands[0].Name)
	require.EqualValues(t, 2, commands[0].Count)
	require.EqualValues(t, 1, commands[0].Failed)
	require.EqualValues(t, 2, commands[0].Timed)
	require.GreaterOrEqual(t, commands[0].Seconds, 2*0.006)
	require.Less(t, commands[0].Seconds, 60.0, "without the hour between the requests")
	require.EqualValues(t, 1, commands[1].Count)
	require.EqualValues(t, 2, commands[0].Buckets[len(bounds)-1])
	require.Zero(t, commands[0].Buckets[bucketOf(4e6)-1], "none took less than 2.5 ms")

	r.Idle()
	r.Long(p, 1)
	require.EqualValues(t, 2, p.Commands()[1].Count)
	require.EqualValues(t, 1, p.Commands()[1].Timed, "the time of a request without an end means nothing")
}

func TestMoreKindsThanABatchHolds(t *testing.T) {
	m, p := New(Options{}), NewProtocol("p", "a", "b", "c", "d", "e", "f")
	r := m.NewRecorder("")
	r.Arrived()
	for i := range 6 {
		r.Note(p, i, false)
	}
	r.Done()
	for _, c := range p.Commands() {
		require.EqualValues(t, 1, c.Count)
	}
}

func TestWaitingThatWasAskedFor(t *testing.T) {
	m, p := New(Options{}), NewProtocol("p", "get")
	r := m.NewRecorder("")
	r.Arrived()
	passing(m, time.Hour)
	r.Restart()
	r.Note(p, 0, false)
	r.Done()
	require.Less(t, p.Commands()[0].Seconds, 3000.0)
}

func TestNothing(t *testing.T) {
	var m *Meter
	r := m.NewRecorder("")
	require.Nil(t, r)
	r.Idle()
	r.Arrived()
	r.Leave()
	r.Restart()
	r.Note(nil, 0, false)
	r.Describe(Detail{})
	r.Long(nil, 0)
	r.Done()
	require.False(t, r.Detailed())
	require.False(t, m.Sampling())
	var h *Histogram
	h.Observe(1)
}

func TestSlowOperations(t *testing.T) {
	var log bytes.Buffer
	m := New(Options{Slow: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	p := NewProtocol("rest", "get", "put")
	r := m.NewRecorder("10.0.0.1:5")
	require.True(t, r.Detailed())
	one := func(took time.Duration, key string) {
		passing(m, took)
		r.Note(p, 1, false)
		r.Describe(Detail{Protocol: p, Command: 1, Database: "a.kct", Key: []byte(key), In: 10, Out: 20})
	}
	r.Arrived()
	one(time.Second, "fast")
	r.Done()
	_, seen := m.Slow()
	require.Zero(t, seen)

	r.Idle()
	r.Arrived()
	one(time.Second, "fast")
	one(time.Hour, "a\nb"+strings.Repeat("x", 100))
	one(time.Second, "fast")
	passing(m, time.Minute) // for the log
	r.Done()
	slow, seen := m.Slow()
	require.EqualValues(t, 1, seen)
	o := slow[0]
	require.Equal(t, "rest", o.Protocol)
	require.Equal(t, "put", o.Command)
	require.Equal(t, `"a\nb`+strings.Repeat("x", 61)+`"...103`, o.Key)
	require.Equal(t, 3, o.Batch)
	require.InDelta(t, time.Hour+time.Minute, o.Duration, float64(30*time.Second))
	require.InDelta(t, time.Minute, o.Wait, float64(30*time.Second))
	require.Contains(t, log.String(), "slow operation: rest put db=a.kct")
	require.Contains(t, log.String(), "peer=10.0.0.1:5")
	require.NotContains(t, log.String(), "fast")

	for i := range 250 {
		r.Idle()
		r.Arrived()
		one(time.Hour, string(rune('A'+i%26)))
		r.Done()
	}
	slow, seen = m.Slow()
	require.EqualValues(t, 251, seen)
	require.Len(t, slow, keepSlow)
	require.Equal(t, `"P"`, slow[0].Key, "the newest first")
	require.Equal(t, `"O"`, slow[1].Key)
}

func TestSamples(t *testing.T) {
	var log bytes.Buffer
	m := New(Options{Sample: 10, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.True(t, m.Sampling())
	p := NewProtocol("rest", "get")
	r := m.NewRecorder("peer")
	for range 35 {
		r.Arrived()
		r.Note(p, 0, true)
		r.Describe(Detail{Protocol: p, Key: []byte("k"), Failed: true})
		r.Done()
	}
	require.Equal(t, 3, strings.Count(log.String(), "request: rest get key="))
	_, seen := m.Slow()
	require.Zero(t, seen)
}

func TestHistogram(t *testing.T) {
	h := NewHistogram(10, 20)
	for _, v := range []int64{5, 10, 11, 30} {
		h.Observe(v)
	}
	count, sum, upTo := h.Snapshot(0.5)
	require.EqualValues(t, 4, count)
	require.InDelta(t, 28, sum, 1e-9)
	require.Equal(t, map[float64]uint64{5: 2, 10: 3}, upTo)
}

// TestNoAllocation: measuring costs no memory per request.
func TestNoAllocation(t *testing.T) {
	m, p := New(Options{}), NewProtocol("p", "get")
	r := m.NewRecorder("")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r.Idle()
		r.Arrived()
		r.Note(p, 0, false)
		r.Done()
	}))
}

// BenchmarkRequest is what one request costs that comes alone.
func BenchmarkRequest(b *testing.B) {
	m, p := New(Options{}), NewProtocol("p", "get")
	b.RunParallel(func(pb *testing.PB) {
		r := m.NewRecorder("")
		for pb.Next() {
			r.Idle()
			r.Arrived()
			r.Note(p, 0, false)
			r.Done()
		}
	})
}

// BenchmarkStill is the same when nobody measures, and nobody watches.
func BenchmarkStill(b *testing.B) {
	m, p := New(Options{Still: true}), NewProtocol("p", "get")
	r := m.NewRecorder("")
	for b.Loop() {
		r.Idle()
		r.Arrived()
		if r.Wanted() {
			r.Note(p, 0, false)
		}
		r.Done()
	}
}

// BenchmarkOff is the same when nobody measures.
func BenchmarkOff(b *testing.B) {
	p := NewProtocol("p", "get")
	var r *Recorder
	for b.Loop() {
		r.Idle()
		r.Arrived()
		r.Note(p, 0, false)
		r.Done()
	}
}
