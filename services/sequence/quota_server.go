package sequence

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"time"

	"gotycoon/access"
	"gotycoon/db"
	"gotycoon/internal/metrics"
	"gotycoon/services/leader"
)

// QuotaOptions of a QuotaServer.
type QuotaOptions struct {
	DB      *db.DB        // a database file, which keeps amounts and journals
	Limit   int64         // a new quota without a name begins with it, with a name with 0
	Export  string        // file for journals, see exporter; empty means none
	Timeout time.Duration // of one wait for request bytes or send space; 0 means 30 s
	Access  *access.Guard // rights of clients; nil: all of them for everybody
	Limits  Limits        // of connections
	Logger  *slog.Logger  // nil means silent

	Meter    *metrics.Meter    // measures connections; nil: nobody does
	Requests *metrics.Protocol // made by NewQuotaRequests; nil: requests are not counted

	Primary *leader.Role // which of several servers changes quotas; nil: this one
}

// QuotaServer serves /query, /apply, /cancel, /increase, /decrease and /empty.
type QuotaServer struct {
	port
	opts     QuotaOptions
	records  *records
	quotas   *named[*quota]
	exporter *exporter
}

// NewQuotaServer opens the quota without a name. If it has a record, it continues with the recorded
// amount, whatever o.Limit is now. Start begins to serve.
func NewQuotaServer(o QuotaOptions) (*QuotaServer, error) {
	if o.Limit < 0 {
		return nil, errors.New("the limit of a quota cannot be negative")
	}
	if err := durable(o.DB); err != nil {
		return nil, err
	}
	s := &QuotaServer{port: newPort(o.Timeout, o.Limits, o.Logger, o.Meter, o.Requests).guarded(o.Access, access.Quota), opts: o, records: &records{db: o.DB}}
	s.quotas = newNamed(s.open)
	s.route = s.answer
	var err error
	if s.exporter, err = newExporter(o.Export, s.records, s.logger); err != nil {
		return nil, err
	}
	if _, err = s.quotas.get(nil, true); err == nil {
		err = o.Primary.Attach(s)
	}
	if err != nil {
		s.exporter.close()
		return nil, err
	}
	return s, nil
}

// Lead implements leader.Service. Each quota reads its records again when it is next used
// (quota.lead). Quotas that are used up are exported anew: the server on which the quota was used
// up may have ended before it exported the journals.
func (s *QuotaServer) Lead() error {
	if s.opts.Export == "" {
		return nil
	}
	names, err := s.records.names([]byte(quotaPrefix), MaxNames)
	if err != nil {
		return err
	}
	for _, name := range names {
		if now, known, err := s.records.state(name); err != nil || !known || now.open {
			continue // the next call of a damaged quota reports the damage
		}
		if q, err := s.quotas.get([]byte(name), false); err == nil && s.records.complete(q) == nil {
			q.anew.Store(true)
			q.export()
		}
	}
	return nil
}

// Yield implements leader.Service. It waits for the calls in flight; later calls are refused by
// quota.lead.
func (s *QuotaServer) Yield() {
	_ = s.quotas.all(func(q *quota) error { // never fails
		q.mu.Lock()
		defer q.mu.Unlock()
		return nil
	})
}

// errUnknown is the error of a call that names a quota which was never increased.
var errUnknown = errors.New("no such quota")

// open opens a quota. Only /increase creates a quota with a name.
func (s *QuotaServer) open(name string, create bool) (*quota, error) {
	q := &quota{name: name, records: s.records, primary: s.opts.Primary, exhausted: s.exporter.want, fresh: state{open: true}}
	if name == "" {
		q.fresh.remaining = s.opts.Limit
	}
	switch _, known, err := q.load(); {
	case err != nil:
		return nil, err
	case !known && !create:
		return nil, errUnknown
	}
	return q, nil
}

// Start begins to serve connections to l, which now belongs to the server. It is called once.
func (s *QuotaServer) Start(l net.Listener) { s.start(l) }

// Close ends the connections and finishes exports.
func (s *QuotaServer) Close() error {
	err := s.close()
	s.exporter.close()
	return err
}

// answer answers one request. Paths are compared byte for byte.
func (s *QuotaServer) answer(dst, target []byte, owed *db.Pending) ([]byte, string) {
	path, query, _ := bytes.Cut(target, []byte("?"))
	switch string(path) {
	case "/query":
		return s.query(dst, query, owed)
	case "/empty":
		return s.change(dst, query, "", &call{word: "empty", pending: owed})
	case "/apply", "/increase", "/decrease":
		return s.change(dst, query, "amt=", &call{word: string(path[1:]), pending: owed})
	case "/cancel":
		return s.change(dst, query, "jnlsno=", &call{word: "cancel", pending: owed})
	}
	return notFound(dst)
}

// query answers /query and /query?name=NAME.
func (s *QuotaServer) query(dst, query []byte, owed *db.Pending) ([]byte, string) {
	var name []byte
	if !params(query, func(param string, value []byte) bool { name = value; return param == "name" }) {
		return notFound(dst)
	}
	q, err := s.quotas.get(name, false)
	var now state
	if err == nil {
		now, err = q.look(owed)
	}
	if err != nil {
		return s.failed(dst, err)
	}
	return append(strconv.AppendInt(dst, now.remaining, 10), '\n'), statusOK
}

// change answers the calls that may change a quota. number is the first parameter, "amt=" or
// "jnlsno=", or empty for a call without a number; "name=" and "id=" may follow.
func (s *QuotaServer) change(dst, query []byte, number string, c *call) ([]byte, string) {
	rest, ok := bytes.CutPrefix(query, []byte(number))
	if !ok {
		return notFound(dst)
	}
	if number != "" {
		c.number = atoll(rest)
		_, rest, _ = bytes.Cut(rest, []byte("&"))
	}
	var name []byte
	known := params(rest, func(param string, value []byte) bool {
		switch param {
		case "name":
			name = value
		case "id":
			c.id = value
		default:
			return number != "" // the original ignores everything behind the number
		}
		return true
	})
	switch {
	case !known && number == "":
		return notFound(dst)
	case len(name) > maxNameSize || len(c.id) > maxNameSize:
		return badRequest(dst)
	}
	_, err := s.opts.Primary.Term()
	var q *quota
	// A standby must not open a new name: there is no record of it.
	if err == nil || c.word != "increase" {
		q, err = s.quotas.get(name, c.word == "increase")
	}
	if err == nil {
		dst, err = q.do(dst, c)
	}
	if err != nil {
		return s.failed(dst[:0], err)
	}
	return append(dst, '\n'), statusOK
}
