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

// Fetch returns the next n numbers of the sequence, in their order. The server gives out at most 100,000 at once.
func (c *Coconut) Fetch(ctx context.Context, n int) ([]string, error) {
	query := url.Values{}
	if n != 1 {
		query.Set("count", strconv.Itoa(n))
	}
	body, err := c.call(ctx, "/fetch", "", query)
	return strings.Fields(body), err
}

// Explain returns the parts of a number in words.
func (c *Coconut) Explain(ctx context.Context, number string) (string, error) {
	body, err := c.callNamed(ctx, "", "/explain", "sequence="+number, nil)
	return strings.TrimSuffix(body, "\n"), err
}

// Query returns what remains of the quota.
func (c *Coconut) Query(ctx context.Context) (remaining int64, err error) {
	return c.amount(ctx, "/query", "", "")
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
	return c.amount(ctx, "/increase", "amt="+strconv.FormatInt(amount, 10), id)
}

// Decrease takes from the quota without a journal, as much as there is. id is as in Apply.
func (c *Coconut) Decrease(ctx context.Context, amount int64, id string) (remaining int64, err error) {
	return c.amount(ctx, "/decrease", "amt="+strconv.FormatInt(amount, 10), id)
}

// Empty takes all that remains.
func (c *Coconut) Empty(ctx context.Context) error {
	_, err := c.amount(ctx, "/empty", "", "")
	return err
}

// journal makes a call whose reply is a journal number and what remains.
func (c *Coconut) journal(ctx context.Context, path, argument, id string) (number, remaining int64, err error) {
	body, err := c.call(ctx, path, argument, idQuery(id))
	if err != nil {
		return 0, 0, err
	}
	n, _ := fmt.Sscan(body, &number, &remaining)
	switch {
	case n == 0:
		return 0, 0, fmt.Errorf("the server answers %q", body)
	case number < 0:
		return 0, 0, errArguments
	case number == 0:
		return 0, remaining, ErrQuota
	}
	return number, remaining, nil
}

var errArguments = errors.New("the server refuses the arguments: a negative amount, a sum that is too large, journal 0, or an id of another call")

// amount makes a call whose reply is what remains.
func (c *Coconut) amount(ctx context.Context, path, argument, id string) (int64, error) {
	body, err := c.call(ctx, path, argument, idQuery(id))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(body), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the server answers %q", body)
	}
	if n < 0 {
		return 0, errArguments
	}
	return n, nil
}

func idQuery(id string) url.Values {
	if id == "" {
		return nil
	}
	return url.Values{"id": {id}}
}

// call makes one call.
func (c *Coconut) call(ctx context.Context, path, argument string, query url.Values) (string, error) {
	return c.callNamed(ctx, c.Name, path, argument, query)
}

// callNamed makes a call about a sequence or quota. The server takes parameters as they are and in this order: argument, then the others.
func (c *Coconut) callNamed(ctx context.Context, name, path, argument string, query url.Values) (string, error) {
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
	return c.get(ctx, client, target)
}

func (c *Coconut) get(ctx context.Context, client *http.Client, target string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
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
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the server answers %s: %s", resp.Status, strings.TrimSpace(string(body)))
	}
	return string(body), err
}
