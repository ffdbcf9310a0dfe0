package sequence

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"gotycoon/access"
	"gotycoon/db"
	"gotycoon/internal/metrics"
	"gotycoon/services/leader"
)

// MaxCount is how many numbers one /fetch can ask for.
const MaxCount = 100_000

// SequenceOptions of a SequenceServer.
type SequenceOptions struct {
	DB       *db.DB         // a database file, which keeps the bounds
	Reserve  int            // reserve zone of the numbers, 0 to MaxReserve
	ServerNo int            // number of this server, 0 to MaxServerNo; see sequence
	SID      uint16         // its ID in replication, which names its records
	Primary  *leader.Role   // which of several servers with one ServerNo serves; nil: this one
	Timeout  time.Duration  // of one wait for request bytes or send space; 0 means 30 s
	Location *time.Location // in which /explain writes times; nil means time.Local
	Access   *access.Guard  // rights of clients; nil: all of them for everybody
	Limits   Limits         // of connections
	Logger   *slog.Logger   // nil means silent

	Meter    *metrics.Meter    // measures connections; nil: nobody does
	Requests *metrics.Protocol // made by NewSequenceRequests; nil: requests are not counted

	Now func() time.Time // nil means time.Now
}

// SequenceServer serves /fetch and /explain.
type SequenceServer struct {
	port
	opts      SequenceOptions
	records   *records
	sequences *named[*sequence]
}

// NewSequenceServer checks the options. Start begins to serve.
func NewSequenceServer(o SequenceOptions) (*SequenceServer, error) {
	switch {
	case o.Reserve < 0 || o.Reserve > MaxReserve:
		return nil, fmt.Errorf("the reserve of sequence numbers is 0 to %d, not %d", MaxReserve, o.Reserve)
	case o.ServerNo < 0 || o.ServerNo > MaxServerNo:
		return nil, fmt.Errorf("the server number of sequences is 0 to %d, not %d", MaxServerNo, o.ServerNo)
	}
	if err := durable(o.DB); err != nil {
		return nil, err
	}
	if o.Location == nil {
		o.Location = time.Local
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &SequenceServer{port: newPort(o.Timeout, o.Limits, o.Logger, o.Meter, o.Requests).guarded(o.Access, access.Sequence), opts: o, records: &records{db: o.DB, serverNo: o.ServerNo, sid: o.SID}}
	s.sequences = newNamed(func(name string, _ bool) (*sequence, error) { return openSequence(name, s.records, o.Primary, o.Now) })
	s.route = s.answer
	if o.Primary == nil {
		return s, nil
	}
	if err := o.Primary.Attach(s); err != nil {
		return nil, err
	}
	return s, nil
}

// Lead implements leader.Service. It records that this server uses its server number, so that the
// others hear of it before the first number is given out.
func (s *SequenceServer) Lead() error {
	used, _, err := s.records.users()
	if used || err != nil {
		return err
	}
	return s.records.putBound(nil, "", 0)
}

// Yield implements leader.Service. It drops the bounds in memory, so that the rest of the reserved
// seconds is not used: while this server is no primary, another may give out greater numbers.
func (s *SequenceServer) Yield() {
	_ = s.sequences.all(func(q *sequence) error { // never fails
		q.reserveMu.Lock()
		defer q.reserveMu.Unlock()
		q.bound.Store(0)
		return nil
	})
}

// Start begins to serve connections to l, which now belongs to the server. It is called once.
func (s *SequenceServer) Start(l net.Listener) { s.start(l) }

// Close ends the connections and records how far the sequences have come.
func (s *SequenceServer) Close() error {
	var owed db.Pending
	err := errors.Join(s.close(), s.sequences.all(func(q *sequence) error { return q.close(&owed) }))
	return errors.Join(err, owed.Wait(), s.records.db.SyncLog())
}

// answer answers one request. Paths are compared byte for byte.
func (s *SequenceServer) answer(dst, target []byte, _ *db.Pending) ([]byte, string) {
	path, query, _ := bytes.Cut(target, []byte("?"))
	switch string(path) {
	case "/fetch":
		return s.fetch(dst, query)
	case "/explain":
		return s.explain(dst, query)
	}
	return notFound(dst)
}

// fetch answers /fetch, /fetch?count=N, /fetch?name=NAME and both.
func (s *SequenceServer) fetch(dst, query []byte) ([]byte, string) {
	count, name := uint64(1), []byte(nil)
	good := true
	known := params(query, func(param string, value []byte) bool {
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
		return notFound(dst)
	case !good || len(name) > maxNameSize:
		return badRequest(dst)
	}
	sequence, err := s.sequences.get(name, true)
	var first moment
	if err == nil {
		first, err = sequence.fetch(count)
	}
	if err != nil {
		return s.failed(dst, err)
	}
	for m := first; m < first+moment(count); m++ {
		dst = append(appendNumber(dst, s.opts.Reserve, s.opts.ServerNo, m), '\n')
	}
	return dst, statusOK
}

// explain answers /explain?sequence=NUMBER.
func (s *SequenceServer) explain(dst, query []byte) ([]byte, string) {
	number, ok := bytes.CutPrefix(query, []byte("sequence="))
	if !ok {
		return notFound(dst)
	}
	explained, err := appendExplained(dst, number, s.opts.Location)
	if err != nil {
		return badRequest(dst)
	}
	return explained, statusOK
}
