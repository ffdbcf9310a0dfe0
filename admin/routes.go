package admin

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxScrapes is how many scrapes may run at the same time; more are refused.
const maxScrapes = 4

func (s *Server) routes() {
	s.Handle("GET /metrics", Read, promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
	}))
	s.Handle("GET /livez", Open, http.HandlerFunc(s.live))
	s.Handle("GET /readyz", Open, http.HandlerFunc(s.ready))
	if s.opts.Primary != nil {
		s.Handle("GET /primary", Open, http.HandlerFunc(s.primary))
		s.Handle("GET /replica", Open, http.HandlerFunc(s.replica))
	}
	s.Handle("GET /version", Read, http.HandlerFunc(s.version))
	s.Handle("GET /debug/pprof/", Admin, http.HandlerFunc(pprof.Index))
	s.Handle("GET /debug/pprof/cmdline", Admin, http.HandlerFunc(s.commandLine))
	s.Handle("GET /debug/pprof/profile", Admin, http.HandlerFunc(pprof.Profile))
	s.Handle("GET /debug/pprof/symbol", Admin, http.HandlerFunc(pprof.Symbol))
	s.Handle("GET /debug/pprof/trace", Admin, http.HandlerFunc(pprof.Trace))
}

// commandLine is pprof.Cmdline with arguments that may be shown.
func (s *Server) commandLine(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprint(w, strings.Join(s.opts.CommandLine, "\x00"))
}

func (s *Server) live(w http.ResponseWriter, r *http.Request) {
	var reasons []string
	if err := s.opts.Live(); err != nil {
		reasons = append(reasons, err.Error())
	}
	s.probe(w, r, reasons, nil)
}

// ready answers for clients that read and write. With ?reads it answers for clients that only read:
// they may stay while updates are refused.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("reads") {
		s.probe(w, r, s.opts.Reads(), s.opts.Notes())
		return
	}
	s.probe(w, r, s.opts.Ready(), s.opts.Notes())
}

// probe answers a probe. Everybody sees the status; only clients that may read see the reasons, and
// the notes about what else is wrong.
func (s *Server) probe(w http.ResponseWriter, r *http.Request, reasons, notes []string) {
	probeHeader(w)
	word, status := "ok", http.StatusOK
	lines := append([]string{word}, notes...)
	if len(reasons) > 0 {
		word, status = "no", http.StatusServiceUnavailable
		lines = append(reasons, notes...)
	}
	if s.opts.Authorize(r, false) != nil {
		lines = []string{word}
	}
	w.WriteHeader(status)
	fmt.Fprintln(w, strings.Join(lines, "\n"))
}

func probeHeader(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
}

func (s *Server) primary(w http.ResponseWriter, r *http.Request) {
	ok, text := s.opts.Primary()
	s.role(w, r, ok, text)
}

func (s *Server) replica(w http.ResponseWriter, r *http.Request) {
	limit, limited := time.Duration(0), r.URL.Query().Has("max-lag")
	if limited {
		seconds, err := strconv.ParseFloat(r.URL.Query().Get("max-lag"), 64)
		if err != nil || !(seconds >= 0 && seconds <= mostLag) { // NaN too
			http.Error(w, "max-lag is a number of seconds, such as max-lag=2.5", http.StatusBadRequest)
			return
		}
		limit = time.Duration(seconds * float64(time.Second))
	}
	ok, text := s.opts.Replica(limit, limited)
	s.role(w, r, ok, text)
}

const mostLag = 1e9 // seconds

// role answers a probe of the role. Everybody sees the status; only clients that may read see which
// server is the primary.
func (s *Server) role(w http.ResponseWriter, r *http.Request, ok bool, text string) {
	if !ok {
		s.probe(w, r, []string{text}, nil)
		return
	}
	if s.opts.Authorize(r, false) != nil {
		text = "ok"
	}
	probeHeader(w)
	fmt.Fprintln(w, text)
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "gotycoon %s\ngo %s\nrevision %s\n", s.opts.Version, runtime.Version(), s.opts.Revision)
}
