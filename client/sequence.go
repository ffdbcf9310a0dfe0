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

// Sequence is a client of a sequence on a sequence server. Many goroutines may use it.
type Sequence struct{ web }

// NewSequence returns a client of the sequence with a name, on the server at addr, HOST:PORT. The
// name may be empty. Of the options it uses Timeout, MaxIdle, TLS, Dial and Credentials.
func NewSequence(addr, name string, o Options) *Sequence { return &Sequence{newWeb(addr, name, o)} }

// MaxFetch is how many numbers one Fetch can return.
const MaxFetch = 100_000

// Fetch returns the next n numbers of the sequence, 1 to MaxFetch, in their order.
func (s *Sequence) Fetch(ctx context.Context, n int) ([]string, error) {
	if n < 1 || n > MaxFetch {
		return nil, &Error{Code: Invalid, Message: fmt.Sprintf("%d numbers: 1 to %d can be fetched at once", n, MaxFetch)}
	}
	query := ""
	if n != 1 {
		query = "count=" + strconv.Itoa(n)
	}
	body, err := s.call(ctx, http.MethodGet, "/fetch", s.named(), query)
	if err != nil {
		return nil, err
	}
	numbers := strings.Fields(body)
	if len(numbers) != n {
		return nil, wrongServer(fmt.Sprintf("%d words instead of %d numbers", len(numbers), n))
	}
	return numbers, nil
}

// Explain returns the parts of a number in words.
func (s *Sequence) Explain(ctx context.Context, number string) (string, error) {
	body, err := s.call(ctx, http.MethodGet, "/explain", "sequence="+url.QueryEscape(number))
	if refused, ok := errors.AsType[*Error](err); ok && refused.Code == Invalid {
		return "", &Error{Code: Invalid, Message: fmt.Sprintf("%q is no sequence number", number)}
	}
	if err == nil && !strings.HasPrefix(body, "reserve: ") {
		err = wrongServer(fmt.Sprintf("%.40q", body))
	}
	return strings.TrimSuffix(body, "\n"), err
}
