package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxCoconutReply limits what is read of a reply, in bytes: the largest is that of a block of 100,000 numbers.
const maxCoconutReply = 4 << 20

// ErrQuota is returned when a quota has less than what was asked for, or a journal cannot be cancelled.
var ErrQuota = errors.New("refused")

// Coconut is a client of a sequence or quota server. Any number of goroutines may use it.
type Coconut struct {
	Addr    string        // HOST:PORT
	Name    string        // of the sequence or quota; empty: the one without a name
	Timeout time.Duration // of one call; 0: none
	TLS     *tls.Config   // as in Options
	Credentials

	secure secureHTTP
}

// MaxFetch is how many numbers one Fetch can ask for.
const MaxFetch = 100_000

// Fetch returns the next n numbers of the sequence, 1 to MaxFetch, in their order.
func (c *Coconut) Fetch(ctx context.Context, n int) ([]string, error) {
	if n < 1 || n > MaxFetch {
		return nil, fmt.Errorf("%d numbers: 1 to %d can be fetched at once", n, MaxFetch)
	}
	query := url.Values{}
	if n != 1 {
		query.Set("count", strconv.Itoa(n))
	}
	body, err := c.call(ctx, http.MethodGet, "/fetch", "", query)
	if err != nil {
		return nil, err
	}
	numbers := strings.Fields(body)
	if len(numbers) != n {
		return nil, fmt.Errorf("%w: %d words instead of %d numbers", errNoCoconut, len(numbers), n)
	}
	return numbers, nil
}

// errNoCoconut is the answer of another kind of server.
var errNoCoconut = errors.New("the server answers something else than a sequence or quota server; is it its port")

// Explain returns the parts of a number in words.
func (c *Coconut) Explain(ctx context.Context, number string) (string, error) {
	body, err := c.callNamed(ctx, http.MethodGet, "", "/explain", "sequence="+url.QueryEscape(number), nil)
	if known, ok := errors.AsType[*coconutError](err); ok && known.status == http.StatusBadRequest {
		return "", fmt.Errorf("%q is no sequence number", number)
	}
	if err == nil && !strings.HasPrefix(body, "reserve: ") {
		err = fmt.Errorf("%w: %.40q", errNoCoconut, body)
	}
	return strings.TrimSuffix(body, "\n"), err
}

// Query returns what remains of the quota.
func (c *Coconut) Query(ctx context.Context) (remaining int64, err error) {
	return c.amount(ctx, http.MethodGet, "/query", "", "")
}

// Apply takes an amount and returns the number of its journal. It returns ErrQuota when there is not enough. A call that is repeated
// under the same id, because its reply was lost, takes only once; an empty id names nothing.
func (c *Coconut) Apply(ctx context.Context, amount int64, id string) (journal, remaining int64, err error) {
	return c.journal(ctx, "/apply", "amt="+strconv.FormatInt(amount, 10), id)
}

// Cancel gives back what a journal has taken, and returns the number of the journal for that. It returns ErrQuota for a journal that
// is not there, or was cancelled before. id is as in Apply.
func (c *Coconut) Cancel(ctx context.Context, number int64, id string) (journal, remaining int64, err error) {
	return c.journal(ctx, "/cancel", "jnlsno="+strconv.FormatInt(number, 10), id)
}

// Increase adds to the quota. id is as in Apply.
func (c *Coconut) Increase(ctx context.Context, amount int64, id string) (remaining int64, err error) {
	return c.amount(ctx, changing(id), "/increase", "amt="+strconv.FormatInt(amount, 10), id)
}

// Decrease takes from the quota without a journal, as much as there is. id is as in Apply.
func (c *Coconut) Decrease(ctx context.Context, amount int64, id string) (remaining int64, err error) {
	return c.amount(ctx, changing(id), "/decrease", "amt="+strconv.FormatInt(amount, 10), id)
}

// Empty takes all that remains.
func (c *Coconut) Empty(ctx context.Context) error {
	_, err := c.amount(ctx, changing(""), "/empty", "", "")
	return err
}

// journal makes a call whose reply is a journal number and what remains.
func (c *Coconut) journal(ctx context.Context, path, argument, id string) (number, remaining int64, err error) {
	body, err := c.call(ctx, changing(id), path, argument, idQuery(id))
	if err != nil {
		return 0, 0, err
	}
	n, _ := fmt.Sscan(body, &number, &remaining)
	switch {
	case n == 0 || n == 1 && number > 0:
		return 0, 0, fmt.Errorf("%w: %.40q", errNoCoconut, body)
	case number < 0:
		return 0, 0, errArguments
	case number == 0:
		return 0, remaining, ErrQuota
	}
	return number, remaining, nil
}

var errArguments = errors.New("the server refuses the arguments: a negative amount, a sum that is too large, journal 0, or an id of another call")

// changing is the method of a call that changes a quota; the server does not look at it. A GET would be repeated by package net/http when the
// connection ends before the reply: without an id it would count twice.
func changing(id string) string {
	if id != "" {
		return http.MethodGet
	}
	return http.MethodPost
}

// amount makes a call whose reply is what remains.
func (c *Coconut) amount(ctx context.Context, method, path, argument, id string) (int64, error) {
	body, err := c.call(ctx, method, path, argument, idQuery(id))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(body), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %.40q", errNoCoconut, body)
	}
	if n < 0 {
		return 0, errArguments
	}
	return n, nil
}

// coconutError is a reply that refuses a call.
type coconutError struct {
	status       int
	line, reason string // of the status; the body
}

func (e *coconutError) Error() string {
	text := "the server answers " + e.line
	if !strings.HasSuffix(e.line, e.reason) {
		text += ": " + e.reason
	}
	switch e.status {
	case http.StatusNotFound:
		text += ": there is no quota of that name, or another service has the port"
	case http.StatusBadRequest:
		text += ": a name or an id may have 255 bytes"
	}
	return text
}

func idQuery(id string) url.Values {
	if id == "" {
		return nil
	}
	return url.Values{"id": {id}}
}

// call makes one call.
func (c *Coconut) call(ctx context.Context, method, path, argument string, query url.Values) (string, error) {
	return c.callNamed(ctx, method, c.Name, path, argument, query)
}

// callNamed makes a call about a sequence or quota. The server takes parameters as they are and in this order: argument, then the others.
func (c *Coconut) callNamed(ctx context.Context, method, name, path, argument string, query url.Values) (string, error) {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	all := []string{}
	if argument != "" {
		all = append(all, argument)
	}
	if name != "" {
		all = append(all, "name="+url.QueryEscape(name))
	}
	if len(query) > 0 {
		all = append(all, query.Encode())
	}
	scheme, client := "http://", http.DefaultClient
	if c.TLS != nil {
		scheme, client = "https://", c.secure.client(c.TLS)
	}
	target := scheme + c.Addr + path
	if len(all) > 0 {
		target += "?" + strings.Join(all, "&")
	}
	return c.do(ctx, client, method, target)
}

func (c *Coconut) do(ctx context.Context, client *http.Client, method, target string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		return "", err
	}
	c.authorize(req)
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxCoconutReply))
	switch {
	case err != nil:
		return "", err
	case resp.StatusCode != http.StatusOK:
		return "", &coconutError{resp.StatusCode, resp.Status, strings.TrimSpace(string(body))}
	}
	return string(body), nil
}
