// Package sequence hands out sequence numbers, as coconut does in its mode SEQUENCE. coconut's
// documentation specifies the service in section 1.1, the global generator of sequence numbers: the
// format of a number in 1.1.1, the calls in 1.1.2.
//
//	/fetch                    the next number of 16 characters    sequence.go, number.go
//	/explain?sequence=NUMBER  the parts of a number               number.go
//
// Beyond the published calls there are /fetch?count=N for a block and name=NAME for further
// sequences of one server.
//
// What must survive are the bounds of the sequences. They are records of the services' database;
// records.go draws them. A number is never given out twice, whatever happens to the clock, the
// process and the machine: see sequence.
package sequence

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/pages"
	"gotycoon/internal/metrics"
	"gotycoon/services"
	"gotycoon/services/internal/webport"
	"gotycoon/services/leader"
)

// Name is the name of the service.
const Name = "sequence"

// MaxCount is how many numbers one /fetch can ask for.
const MaxCount = 100_000

// Options of a Server.
type Options struct {
	services.Options

	DB       *db.DB         // a database file, which keeps the bounds
	SID      uint16         // this server's ID in replication, which names its records
	Primary  *leader.Role   // which of several servers with one ServerNo serves; nil: this one
	Reserve  int            // reserve zone of the numbers, 0 to MaxReserve
	ServerNo int            // number of this server, 0 to MaxServerNo; see sequence
	Location *time.Location // in which /explain writes times; nil means time.Local

	Now func() time.Time // nil means time.Now
}

// Server serves /fetch and /explain.
type Server struct {
	*webport.Port
	opts      Options
	records   *records
	sequences *webport.Named[*sequence]
}

// New checks the options. Start begins to serve.
func New(o Options) (*Server, error) {
	switch {
	case o.Reserve < 0 || o.Reserve > MaxReserve:
		return nil, fmt.Errorf("the reserve of sequence numbers is 0 to %d, not %d", MaxReserve, o.Reserve)
	case o.ServerNo < 0 || o.ServerNo > MaxServerNo:
		return nil, fmt.Errorf("the server number of sequences is 0 to %d, not %d", MaxServerNo, o.ServerNo)
	}
	recs, err := webport.NewRecords(o.DB)
	if err != nil {
		return nil, err
	}
	if o.Location == nil {
		o.Location = time.Local
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{opts: o, records: &records{recs, o.ServerNo, o.SID}}
	s.Port = webport.New(Name, frame.MemberSequence, o.Options, s.answer, "fetch", "explain")
	s.sequences = webport.NewNamed(func(name string, _ bool) (*sequence, error) { return openSequence(name, s.records, o.Primary, o.Now) })
	if o.Primary == nil {
		return s, nil
	}
	if err := o.Primary.Attach(s); err != nil {
		return nil, err
	}
	return s, nil
}

// Lead implements leader.Service. It records that this server uses its server number. So other
// servers usually learn of the use before this server gives out the first number (mayReserve).
func (s *Server) Lead() error {
	used, _, err := s.records.users()
	if used || err != nil {
		return err
	}
	return s.records.putBound(nil, "", 0)
}

// Yield implements leader.Service. It drops the bounds in memory, so that the next fetch has to
// reserve anew, and is refused where the new primary has the same server number. Otherwise this
// server would use up its reserved seconds, with numbers below those of the new primary.
func (s *Server) Yield() {
	_ = s.sequences.All(func(q *sequence) error { // never fails
		q.reserveMu.Lock()
		defer q.reserveMu.Unlock()
		q.bound.Store(0)
		return nil
	})
}

// Close ends the connections and records how far the sequences have come.
func (s *Server) Close() error {
	var owed db.Pending
	err := errors.Join(s.Stop(), s.sequences.All(func(q *sequence) error { return q.close(&owed) }))
	return errors.Join(err, owed.Wait(), s.records.SyncLog())
}

// answer answers one request. Paths are compared byte for byte.
func (s *Server) answer(dst, target []byte, _ *db.Pending) ([]byte, webport.Status) {
	path, query, _ := bytes.Cut(target, []byte("?"))
	switch string(path) {
	case "/fetch":
		return s.fetch(dst, query)
	case "/explain":
		return s.explain(dst, query)
	}
	return webport.NotFound(dst)
}

// fetch answers /fetch, /fetch?count=N, /fetch?name=NAME and both.
func (s *Server) fetch(dst, query []byte) ([]byte, webport.Status) {
	count, name := uint64(1), []byte(nil)
	good := true
	known := webport.Params(query, func(param string, value []byte) bool {
		switch param {
		case "count":
			n, err := strconv.ParseUint(string(value), 10, 32)
			good = good && err == nil && n > 0 && n <= MaxCount
			count = n
		case "name":
			name = value
		default:
			return false
		}
		return true
	})
	switch {
	case !known:
		return webport.NotFound(dst)
	case !good || len(name) > webport.MaxNameSize:
		return webport.BadRequest(dst)
	}
	sequence, err := s.sequences.Get(name, true)
	var first moment
	if err == nil {
		first, err = sequence.fetch(count)
	}
	if err != nil {
		return s.Failed(dst, err)
	}
	for m := first; m < first+moment(count); m++ {
		dst = append(appendNumber(dst, s.opts.Reserve, s.opts.ServerNo, m), '\n')
	}
	return dst, webport.OK
}

// explain answers /explain?sequence=NUMBER.
func (s *Server) explain(dst, query []byte) ([]byte, webport.Status) {
	number, ok := bytes.CutPrefix(query, []byte("sequence="))
	if !ok {
		return webport.NotFound(dst)
	}
	explained, err := appendExplained(dst, number, s.opts.Location)
	if err != nil {
		return webport.BadRequest(dst)
	}
	return explained, webport.OK
}

// Sequence is a sequence at one moment.
type Sequence struct {
	Name  string    // empty: the sequence without a name
	Bound time.Time // the moments of all numbers given out are before it
}

// List returns the sequences of this server in the order of their names, at most limit of them,
// used since the start or not.
func (s *Server) List(limit int) ([]Sequence, error) {
	prefix := s.records.key(s.records.server(), "")
	page, err := pages.Of(s.records, nil, pages.Options{Prefix: prefix, Records: limit, Examine: limit, Value: 32})
	if err != nil {
		return nil, err
	}
	all := make([]Sequence, 0, len(page.Records))
	for _, r := range page.Records {
		if bound, err := strconv.ParseInt(string(r.Value), 10, 64); err == nil && bound > 0 {
			all = append(all, Sequence{string(r.Key[len(prefix):]), time.Unix(bound, 0)})
		}
	}
	return all, nil
}

// Show implements services.Service.
func (s *Server) Show(_ string, limit int) (any, error) {
	all, err := s.List(limit)
	if err != nil {
		return nil, err
	}
	rows := []map[string]any{}
	for _, q := range all {
		rows = append(rows, map[string]any{"name": q.Name, "bound": q.Bound.UnixMilli()})
	}
	return map[string]any{"sequences": rows, "limit": limit}, nil
}

// Metrics returns the definitions of the metrics of a Server.
func Metrics() []metrics.Definition {
	return []metrics.Definition{metrics.Define("gotycoon_sequences", metrics.Gauge, "Sequences used since the start.")}
}

// Figures implements services.Service.
func (s *Server) Figures() metrics.Source {
	return metrics.Source{Definitions: Metrics(), Read: func(put metrics.Put) { put("gotycoon_sequences", float64(s.sequences.Len())) }}
}
