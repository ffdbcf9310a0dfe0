package api

import (
	"net/http"
	"runtime/metrics"
	"slices"
	"strconv"
	"sync"
	"time"

	counts "gotycoon/internal/metrics"
	"gotycoon/internal/procinfo"
)

const (
	sampleEvery = time.Second
	keepSamples = 300 // five minutes
)

// Sample has the figures of one second, for the charts.
type Sample struct {
	N        uint64    `json:"n"`        // number of the sample, from 1 on
	Time     int64     `json:"t"`        // UNIX milliseconds
	Rates    []float64 `json:"rates"`    // requests per second, by protocol
	P50      *float64  `json:"p50"`      // latency of all requests in seconds; null: no requests
	P99      *float64  `json:"p99"`      //
	P999     *float64  `json:"p999"`     //
	Lag      *float64  `json:"lag"`      // seconds behind the master; null: no master
	SlaveLag *float64  `json:"slaveLag"` // of the follower furthest behind; null: no follower
	RSS      int64     `json:"rss"`      // bytes of memory of the process
	Heap     int64     `json:"heap"`     // bytes of Go objects in it
	Conns    []int     `json:"conns"`    // open connections, by port
	Log      float64   `json:"log"`      // bytes per second appended to update logs
	CPU      float64   `json:"cpu"`      // processors in use
}

// ring keeps the latest samples. The zero value is ready for use.
type ring struct {
	mu  sync.Mutex // protects the fields below
	all []Sample
	n   uint64
}

func (r *ring) add(s Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	s.N = r.n
	if len(r.all) == keepSamples {
		r.all = slices.Delete(r.all, 0, 1)
	}
	r.all = append(r.all, s)
}

// since returns the samples with greater numbers than n.
func (r *ring) since(n uint64) []Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.all {
		if r.all[i].N > n {
			return slices.Clone(r.all[i:])
		}
	}
	return []Sample{}
}

// sample takes samples until Close.
func (a *API) sample(s *Sources) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	last := s.totals()
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-tick.C:
		}
		now := s.totals()
		a.samples.add(now.since(last))
		last = now
	}
}

// totals are sums since the start of the process, and the present figures.
type totals struct {
	Sample
	at      time.Time
	counts  []uint64
	buckets []uint64 // requests that took at most each bound
	timed   uint64
	logged  int64
	cpu     time.Duration
}

func (s *Sources) totals() totals {
	now := totals{at: time.Now(), buckets: make([]uint64, len(counts.Bounds()))}
	for _, p := range s.Protocols {
		now.addProtocol(p)
	}
	for _, p := range s.Ports {
		open, _ := p.Connections()
		now.Conns = append(now.Conns, open)
	}
	for _, l := range s.Catalog.Logs() {
		now.logged += l.Bytes()
	}
	info := procinfo.Read()
	now.RSS, now.cpu = info.MemRSS, info.User+info.System
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	now.Heap = min(now.RSS, max(0, int64(heap[0].Value.Uint64())-s.Ballast))
	now.Lag, now.SlaveLag = s.lags()
	return now
}

func (t *totals) addProtocol(p *counts.Protocol) {
	n := uint64(0)
	for _, c := range p.Commands() {
		n += c.Count
		t.timed += c.Timed
		for i, upTo := range c.Buckets {
			t.buckets[i] += upTo
		}
	}
	t.counts = append(t.counts, n)
}

// lags returns the lag of this server behind its master, and the greatest lag of its followers.
func (s *Sources) lags() (own, slowest *float64) {
	if s.Follower != nil {
		if f := s.Follower(); f.Following && f.Seconds >= 0 {
			own = &f.Seconds
		}
	}
	if s.Replicas == nil {
		return own, nil
	}
	for _, r := range s.Replicas() {
		if r.Seconds >= 0 && (slowest == nil || *slowest < r.Seconds) {
			slowest = new(r.Seconds)
		}
	}
	return own, slowest
}

// since returns the sample of the time since last.
func (t *totals) since(last totals) Sample {
	s := t.Sample
	s.Time = t.at.UnixMilli()
	seconds := max(t.at.Sub(last.at).Seconds(), 1e-3)
	for i, n := range t.counts {
		s.Rates = append(s.Rates, float64(n-last.counts[i])/seconds)
	}
	grown := make([]uint64, len(t.buckets))
	for i := range grown {
		grown[i] = t.buckets[i] - min(t.buckets[i], last.buckets[i])
	}
	timed := t.timed - min(t.timed, last.timed)
	s.P50, s.P99, s.P999 = quantile(grown, timed, 0.5), quantile(grown, timed, 0.99), quantile(grown, timed, 0.999)
	s.Log = float64(max(0, t.logged-last.logged)) / seconds
	s.CPU = (t.cpu - last.cpu).Seconds() / seconds
	return s
}

// quantile estimates the time that this share of the requests has not exceeded. upTo counts the
// requests that took at most each bound, total counts all. Within a bucket, times are taken as
// evenly spread.
func quantile(upTo []uint64, total uint64, share float64) *float64 {
	if total == 0 {
		return nil
	}
	bounds := counts.Bounds()
	rank := share * float64(total)
	below, low := 0.0, 0.0
	for i, n := range upTo {
		if float64(n) >= rank && float64(n) > below {
			return new(low + (bounds[i]-low)*(rank-below)/(float64(n)-below))
		}
		below, low = float64(n), bounds[i]
	}
	return new(bounds[len(bounds)-1])
}

// sampled answers with the samples after the number since, or all of them.
func (a *API) sampled(_ http.ResponseWriter, r *http.Request, s *Sources) (any, error) {
	since, err := strconv.ParseUint(r.URL.Query().Get("since"), 10, 64)
	if err != nil {
		since = 0
	}
	protocols, ports := []string{}, []string{}
	for _, p := range s.Protocols {
		protocols = append(protocols, p.Name())
	}
	for _, p := range s.Ports {
		ports = append(ports, p.Name)
	}
	return map[string]any{
		"every": sampleEvery.Seconds(), "keep": keepSamples, "started": a.opts.Started.UnixMilli(),
		"protocols": protocols, "ports": ports, "samples": a.samples.since(since),
	}, nil
}
