package api

import (
	"context"
	"io"
	"net/http"

	"gotycoon/db"
	"gotycoon/db/owed"
)

// Memory is the account that the requests of all ports share, see internal/netio.
type Memory interface {
	Reserve(bytes int64, small bool) bool
	Release(bytes int64)
}

// smallRequest is how many bytes a request may hold and count as small.
const smallRequest = 64 << 10

// purse is what one request holds of the account, from when it makes an object until its client has
// taken the answer.
type purse struct {
	memory Memory // nil: there is always memory
	held   int64
}

var _ owed.Purse = (*purse)(nil)

// Hold implements owed.Purse.
func (p *purse) Hold(n int) error {
	if p.memory == nil {
		return nil
	}
	if !p.memory.Reserve(int64(n), p.held+int64(n) <= smallRequest) {
		return refused(http.StatusServiceUnavailable, "there is no memory for an answer or a request of this size now (-max-inflight)")
	}
	p.held += int64(n)
	return nil
}

// LetGo implements owed.Purse.
func (p *purse) LetGo(n int) {
	if p.memory != nil {
		p.memory.Release(int64(n))
		p.held -= int64(n)
	}
}

func (p *purse) close() { p.LetGo(int(p.held)) }

type purseKey struct{}

// withPurse gives a request a purse.
func (a *API) withPurse(r *http.Request) (*http.Request, *purse) {
	p := &purse{memory: a.opts.Memory}
	return r.WithContext(context.WithValue(r.Context(), purseKey{}, p)), p
}

func purseOf(r *http.Request) *purse { return r.Context().Value(purseKey{}).(*purse) }

// get reads a record. A large value is taken from the purse before it is copied.
func get(r *http.Request, d *db.DB, key []byte) (value []byte, xt int64, err error) {
	p := db.Pending{Purse: purseOf(r)}
	value, xt, err = d.Get(&p, nil, key)
	if owed := p.Wait(); owed != nil {
		err = owed
	}
	return value, xt, err
}

// bodyCost is how often the bytes of a body in JSON are in memory: as they came, in the decoder, in
// the record that is made of them, and in its stored form.
const bodyCost = 4

// weighed is a body that is taken from the purse as it comes.
type weighed struct {
	io.Reader
	purse *purse
}

// Read implements io.Reader.
func (w *weighed) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	if lack := w.purse.Hold(bodyCost * n); lack != nil {
		return n, lack
	}
	return n, err
}
