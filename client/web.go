package client

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// idleWeb is how long a connection to a sequence or quota server is kept for the next call.
	idleWeb = 10 * time.Second
	// maxWebReply limits the size of a reply, in bytes. The largest is a block of 100,000 numbers.
	maxWebReply = 4 << 20
)

// web makes calls to a sequence or quota server, which have pages of their own.
type web struct {
	addr, name string
	opts       Options
	http       *http.Client
}

func newWeb(addr, name string, o Options) web {
	return web{addr: addr, name: name, opts: o, http: &http.Client{Transport: &http.Transport{
		DialContext: o.Dial, TLSClientConfig: o.TLS, MaxIdleConnsPerHost: cmp.Or(o.MaxIdle, maxIdle), IdleConnTimeout: idleWeb,
	}}}
}

// Close closes the idle connections.
func (w *web) Close() error {
	w.http.CloseIdleConnections()
	return nil
}

// named returns the parameter for the name.
func (w *web) named() string {
	if w.name == "" {
		return ""
	}
	return "name=" + url.QueryEscape(w.name)
}

// call makes a call with those of the parameters that are not empty, and returns the page.
func (w *web) call(ctx context.Context, method, path string, params ...string) (string, error) {
	ctx, cancel := w.opts.limit(ctx)
	defer cancel()
	target := url.URL{Scheme: "http", Host: w.addr, Path: path}
	if w.opts.TLS != nil && w.opts.Dial == nil {
		target.Scheme = "https"
	}
	for _, param := range params {
		if param != "" {
			target.RawQuery += "&" + param
		}
	}
	target.RawQuery = strings.TrimPrefix(target.RawQuery, "&")
	req, err := http.NewRequestWithContext(ctx, method, target.String(), nil)
	if err != nil {
		return "", networkError(err)
	}
	if value := w.opts.authorization(); value != "" {
		req.Header.Set("Authorization", value)
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return "", webNetworkError(ctx, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxWebReply))
	switch {
	case err != nil:
		return "", webNetworkError(ctx, err)
	case resp.StatusCode != http.StatusOK:
		return "", webError(resp, strings.TrimSpace(string(body)))
	}
	return string(body), nil
}

// webNetworkError is the error of a call without a reply. Unless there was no connection, the
// server may have got the call.
func webNetworkError(ctx context.Context, err error) error {
	failed, ok := errors.AsType[*net.OpError](err)
	sent := !ok || failed.Op != "dial"
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return &Error{Code: Network, Message: err.Error(), Err: err, Sent: sent}
}

// errNotFound: the server has no such page.
var errNotFound = errors.New("not found")

// webError makes an error of a reply with an error status.
func webError(resp *http.Response, reason string) error {
	e := &Error{Code: Miscellaneous, Message: "the server answers " + resp.Status}
	if !strings.HasSuffix(resp.Status, reason) {
		e.Message += ": " + reason
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Message = ErrDenied.Error() + ": " + strings.TrimPrefix(reason, ErrDenied.Error()+": ")
	case http.StatusNotFound:
		e.Err = errNotFound
		e.Message += ": there is no quota of that name, or another service has the port"
	case http.StatusBadRequest:
		e.Code = Invalid
		e.Message += ": a name or an id may have 255 bytes"
	}
	return e
}

// wrongServer is the error of a reply that another kind of server gives.
func wrongServer(reply string) error {
	return &Error{Code: Miscellaneous, Message: ErrWrongServer.Error() + ": " + reply, Err: ErrWrongServer}
}
