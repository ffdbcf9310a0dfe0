// Package quota manages quotas, as coconut does in its mode LIMITAMT. coconut's documentation
// specifies the service in section 1.2, the global manager of quotas: its use in 1.2.1, the calls
// in 1.2.2.
//
//	/query /apply /cancel /increase /decrease /empty
//
// server.go parses the calls, quota.go carries them out. Beyond the published calls there are
// name=NAME for further quotas of one server, and id=ID, which makes the repetition of a call
// harmless.
//
// What must survive are the remaining amounts, the journals and the replies to calls with an id.
// They are records of the services' database; records.go draws them. No acknowledged call is lost,
// and a call is whole also on a server that takes over after it has received a part of its records
// (last.go).
package quota

import (
	"bytes"
	"errors"
	"strconv"
	"sync"

	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/services"
	"gotycoon/services/internal/webport"
	"gotycoon/services/leader"
)

// Name is the name of the service.
const Name = "quota"

// Options of a Server.
type Options struct {
	services.Options

	DB      *db.DB       // a database file, which keeps amounts and journals
	Primary *leader.Role // which of several servers changes quotas; nil: this one
	Limit   int64        // amount of a new quota without a name; one with a name begins with 0
	Export  string       // file for journals, see exporter; empty means none
}

// Server serves /query, /apply, /cancel, /increase, /decrease and /empty.
type Server struct {
	*webport.Port
	opts     Options
	records  *records
	quotas   *webport.Named[*quota]
	exporter *exporter
	calls    sync.Pool // of *call
}

// New opens the quota without a name. If it has a record, it continues with the recorded amount,
// whatever o.Limit is now. Start begins to serve.
func New(o Options) (*Server, error) {
	if o.Limit < 0 {
		return nil, errors.New("the limit of a quota cannot be negative")
	}
	recs, err := webport.NewRecords(o.DB)
	if err != nil {
		return nil, err
	}
	s := &Server{opts: o, records: &records{Records: recs}}
	s.Port = webport.New(Name, frame.MemberQuota, o.Options, s.answer, "query", "empty", "apply", "increase", "decrease", "cancel")
	s.quotas = webport.NewNamed(s.open)
	if s.exporter, err = newExporter(o.Export, s.records, s.Logger); err != nil {
		return nil, err
	}
	if _, err = s.quotas.Get(nil, true); err == nil {
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
func (s *Server) Lead() error {
	if s.opts.Export == "" {
		return nil
	}
	names, err := s.records.Words([]byte(quotaPrefix), webport.MaxNames)
	if err != nil {
		return err
	}
	for _, name := range names {
		if now, known, err := s.records.state(name); err != nil || !known || now.open {
			continue // the next call of a damaged quota reports the damage
		}
		if q, err := s.quotas.Get([]byte(name), false); err == nil && s.records.complete(q) == nil {
			q.anew.Store(true)
			q.export()
		}
	}
	return nil
}

// Yield implements leader.Service. It waits for the calls in flight; later calls are refused by
// quota.lead.
func (s *Server) Yield() {
	_ = s.quotas.All(func(q *quota) error { // never fails
		q.mu.Lock()
		defer q.mu.Unlock()
		q.commitRound()
		return nil
	})
}

// errUnknown is the error of a call that names a quota which was never increased.
var errUnknown = errors.New("no such quota")

// open opens a quota. Only /increase creates a quota with a name.
func (s *Server) open(name string, create bool) (*quota, error) {
	q := &quota{name: name, records: s.records, primary: s.opts.Primary, exhausted: s.exporter.want, failed: s.Report, fresh: state{open: true}}
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

// Close ends the connections and finishes exports.
func (s *Server) Close() error {
	err := s.Stop()
	s.exporter.close()
	return err
}

// answer answers one request. Paths are compared byte for byte.
func (s *Server) answer(dst, target []byte, owed *db.Pending) ([]byte, webport.Status) {
	path, query, _ := bytes.Cut(target, []byte("?"))
	switch string(path) {
	case "/query":
		return s.query(dst, query, owed)
	case "/empty":
		return s.change(dst, query, "empty", "", owed)
	case "/apply":
		return s.change(dst, query, "apply", "amt=", owed)
	case "/increase":
		return s.change(dst, query, "increase", "amt=", owed)
	case "/decrease":
		return s.change(dst, query, "decrease", "amt=", owed)
	case "/cancel":
		return s.change(dst, query, "cancel", "jnlsno=", owed)
	}
	return webport.NotFound(dst)
}

// failed is the reply to a call that could not be carried out.
func (s *Server) failed(dst []byte, err error) ([]byte, webport.Status) {
	if errors.Is(err, errUnknown) {
		return webport.NotFound(dst)
	}
	return s.Failed(dst, err)
}

// query answers /query and /query?name=NAME.
func (s *Server) query(dst, query []byte, owed *db.Pending) ([]byte, webport.Status) {
	var name []byte
	if !webport.Params(query, func(param string, value []byte) bool { name = value; return param == "name" }) {
		return webport.NotFound(dst)
	}
	q, err := s.quotas.Get(name, false)
	var now state
	if err == nil {
		now, err = q.look(owed)
	}
	if err != nil {
		return s.failed(dst, err)
	}
	return append(strconv.AppendInt(dst, now.remaining, 10), '\n'), webport.OK
}

// change answers the calls that may change a quota. number is the first parameter, "amt=" or
// "jnlsno=", or empty for a call without a number; "name=" and "id=" may follow.
func (s *Server) change(dst, query []byte, word, number string, owed *db.Pending) ([]byte, webport.Status) {
	rest, ok := bytes.CutPrefix(query, []byte(number))
	if !ok {
		return webport.NotFound(dst)
	}
	c := s.newCall(word, owed)
	defer s.free(c)
	if number != "" {
		c.number = atoll(rest)
		_, rest, _ = bytes.Cut(rest, []byte("&"))
	}
	var name []byte
	known := webport.Params(rest, func(param string, value []byte) bool {
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
		return webport.NotFound(dst)
	case len(name) > webport.MaxNameSize || len(c.id) > webport.MaxNameSize:
		return webport.BadRequest(dst)
	}
	_, err := s.opts.Primary.Term()
	var q *quota
	// A standby must not open a new name: there is no record of it.
	if err == nil || c.word != "increase" {
		q, err = s.quotas.Get(name, c.word == "increase")
	}
	if err == nil {
		dst, err = q.do(dst, c)
	}
	if err != nil {
		return s.failed(dst[:0], err)
	}
	return append(dst, '\n'), webport.OK
}

// newCall takes a call from the pool; free gives it back.
func (s *Server) newCall(word string, owed *db.Pending) *call {
	c, ok := s.calls.Get().(*call)
	if !ok {
		c = new(call)
	}
	c.word, c.pending = word, owed
	return c
}

func (s *Server) free(c *call) {
	*c = call{group: c.group}
	s.calls.Put(c)
}

// atoll reads an amount as the original does: blanks, a sign, then digits up to the first other
// character; no digits mean 0. Amounts out of range become the largest or smallest number.
func atoll(text []byte) int64 {
	text = bytes.TrimLeft(text, " \t\n\v\f\r")
	size := 0
	for size < len(text) && (isDigit(text[size]) || size == 0 && (text[0] == '-' || text[0] == '+')) {
		size++
	}
	n, err := strconv.ParseInt(string(text[:size]), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
