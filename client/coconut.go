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

// maxCoconutReply limits the size of a reply, in bytes. The largest is a block of 100,000 numbers.
const maxCoconutReply = 4 << 20

// ErrQuota means that a quota has less than the requested amount, or that a journal cannot be
// cancelled.
var ErrQuota = errors.New("refused")

// Coconut is a client of a sequence or quota server. Any number of goroutines may use it.
type Coconut struct {
	Addr    string        // HOST:PORT
	Name    string        // name of the sequence or quota; empty: the one without a name
	Timeout time.Duration // of one call; 0: none
	TLS     *tls.Config   // as in Options
	Credentials

	secure secureHTTP
}

// MaxFetch is how many numbers one Fetch can return.
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

// errNoCoconut means that another kind of server has answered.
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

// Query returns the remaining amount of the quota.
func (c *Coconut) Query(ctx context.Context) (remaining int64, err error) {
	return c.amount(ctx, http.MethodGet, "/query", "", "")
}

// Apply takes an amount from the quota, and returns the number of its journal. It returns ErrQuota
// if there is not enough. A caller that has lost the reply may repeat the call under the same id:
// the amount is taken only once. An empty id gives no such protection.
func (c *Coconut) Apply(ctx context.Context, amount int64, id string) (journal, remaining int64, err error) {
	return c.journal(ctx, "/apply", "amt="+strconv.FormatInt(amount, 10), id)
}

// Cancel gives back what a journal has taken, and returns the number of the journal of the cancel.
// It returns ErrQuota if the journal does not exist or was cancelled before. id is as in Apply.
func (c *Coconut) Cancel(ctx context.Context, number int64, id string) (journal, remaining int64, err error) {
	return c.journal(ctx, "/cancel", "jnlsno="+strconv.FormatInt(number, 10), id)
}

// Increase adds to the quota. id is as in Apply.
func (c *Coconut) Increase(ctx context.Context, amount int64, id string) (remaining int64, err error) {
	return c.amount(ctx, changing(id), "/increase", "amt="+strconv.FormatInt(amount, 10), id)
}

// Decrease takes at most amount from the quota, without a journal. id is as in Apply.
func (c *Coconut) Decrease(ctx context.Context, amount int64, id string) (remaining int64, err error) {
	return c.amount(ctx, changing(id), "/decrease", "amt="+strconv.FormatInt(amount, 10), id)
}

// Empty takes all that remains of the quota.
func (c *Coconut) Empty(ctx context.Context) error {
	_, err := c.amount(ctx, changing(""), "/empty", "", "")
	return err
}

// journal makes a call whose reply is a journal number and the remaining amount.
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

// changing returns the method of a call that changes a quota; the server ignores the method.
// Package net/http repeats a GET if the connection ends before the reply, which without an id would
// count twice. It does not repeat a POST.
func changing(id string) string {
	if id != "" {
		return http.MethodGet
	}
	return http.MethodPost
}

// amount makes a call whose reply is the remaining amount.
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

// coconutError is a reply with an error status.
type coconutError struct {
	status       int
	line, reason string // text of the status; body
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

// callNamed makes a call for the sequence or quota with this name. The server expects argument
// before the other parameters.
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
