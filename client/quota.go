package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Errors of a Quota to test for with errors.Is.
var (
	// ErrQuota means that a quota has less than the requested amount, or that a journal cannot be
	// cancelled.
	ErrQuota = errors.New("refused")
	// ErrNoQuota means that there is no quota of that name.
	ErrNoQuota = errors.New("there is no quota of that name")
)

// Quota is a client of a quota on a quota server. Many goroutines may use it.
//
// Calls that change the quota take an id. A caller that has lost the reply may repeat the call
// under the same id: it counts only once. An empty id gives no such protection.
type Quota struct{ web }

// NewQuota returns a client of the quota with a name, on the server at addr, HOST:PORT. The name
// may be empty. Of the options it uses Timeout, MaxIdle, TLS, Dial and Credentials.
func NewQuota(addr, name string, o Options) *Quota { return &Quota{newWeb(addr, name, o)} }

// Query returns the remaining amount.
func (q *Quota) Query(ctx context.Context) (remaining int64, err error) {
	return q.amount(ctx, http.MethodGet, "/query", "", "")
}

// Apply takes an amount from the quota, and returns the number of its journal. It returns ErrQuota
// if there is not enough.
func (q *Quota) Apply(ctx context.Context, amount int64, id string) (journal, remaining int64, err error) {
	return q.journal(ctx, "/apply", "amt="+strconv.FormatInt(amount, 10), id)
}

// Cancel gives back what a journal has taken, and returns the number of the journal of the cancel.
// It returns ErrQuota if the journal does not exist or was cancelled before.
func (q *Quota) Cancel(ctx context.Context, number int64, id string) (journal, remaining int64, err error) {
	return q.journal(ctx, "/cancel", "jnlsno="+strconv.FormatInt(number, 10), id)
}

// Increase adds to the quota, which comes to be with its first increase.
func (q *Quota) Increase(ctx context.Context, amount int64, id string) (remaining int64, err error) {
	return q.amount(ctx, changing(id), "/increase", "amt="+strconv.FormatInt(amount, 10), id)
}

// Decrease takes at most amount from the quota, without a journal.
func (q *Quota) Decrease(ctx context.Context, amount int64, id string) (remaining int64, err error) {
	return q.amount(ctx, changing(id), "/decrease", "amt="+strconv.FormatInt(amount, 10), id)
}

// Empty takes all that remains.
func (q *Quota) Empty(ctx context.Context) error {
	_, err := q.amount(ctx, changing(""), "/empty", "", "")
	return err
}

// changing returns the method of a call that changes a quota; the server ignores the method.
// Package net/http repeats a GET if the connection ends before the reply, which without an id would
// count twice. It does not repeat a POST.
func changing(id string) string {
	if id != "" {
		return http.MethodGet
	}
	return http.MethodPost
}

// journal makes a call whose reply is a journal number and the remaining amount.
func (q *Quota) journal(ctx context.Context, path, argument, id string) (number, remaining int64, err error) {
	body, err := q.callQuota(ctx, changing(id), path, argument, id)
	if err != nil {
		return 0, 0, err
	}
	n, _ := fmt.Sscan(body, &number, &remaining)
	switch {
	case n == 0 || n == 1 && number > 0:
		return 0, 0, wrongServer(fmt.Sprintf("%.40q", body))
	case number < 0:
		return 0, 0, badArguments()
	case number == 0:
		return 0, remaining, ErrQuota
	}
	return number, remaining, nil
}

// amount makes a call whose reply is the remaining amount.
func (q *Quota) amount(ctx context.Context, method, path, argument, id string) (int64, error) {
	body, err := q.callQuota(ctx, method, path, argument, id)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(body), 10, 64)
	if err != nil {
		return 0, wrongServer(fmt.Sprintf("%.40q", body))
	}
	if n < 0 {
		return 0, badArguments()
	}
	return n, nil
}

// callQuota makes a call. The server expects argument before the other parameters.
func (q *Quota) callQuota(ctx context.Context, method, path, argument, id string) (string, error) {
	if id != "" {
		id = "id=" + url.QueryEscape(id)
	}
	body, err := q.call(ctx, method, path, argument, q.named(), id)
	if refused, ok := errors.AsType[*Error](err); ok && errors.Is(err, errNotFound) {
		refused.Err = ErrNoQuota
	}
	return body, err
}

func badArguments() error {
	return &Error{Code: Invalid, Message: "the server refuses the arguments: a negative amount, a sum that is too large, " +
		"journal 0, or an id of another call"}
}
