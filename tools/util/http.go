package util

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"gotycoon/tools/cli"
)

// requester is one run of http.
type requester struct {
	*call
	get, head, post, put, del *bool
	body                      *string
	headers, query            *[][2]string
	timeout                   *time.Duration
	showHead                  *bool
	expected                  *int64
	who                       *cli.Credentials
	tls                       *cli.TLS
	url                       string
}

// request makes an HTTP request and prints the reply.
func request(ctx context.Context, c *call) error {
	f := c.flags
	r := &requester{call: c,
		get:      f.Bool("get", false, "the method GET (default)"),
		head:     f.Bool("head", false, "the method HEAD"),
		post:     f.Bool("post", false, "the method POST; the body is standard input"),
		put:      f.Bool("put", false, "the method PUT; the body is standard input"),
		del:      f.Bool("delete", false, "the method DELETE"),
		body:     f.String("body", "", "send the content of this `file`, or what follows a @"),
		headers:  f.Pairs("ah", "send this header"),
		query:    f.Pairs("qs", "add this parameter to the URL"),
		timeout:  f.Seconds("tout", 0, "give up when it takes longer than so many seconds (default: never)"),
		showHead: f.Bool("ph", false, "print the status line and the headers too"),
		expected: f.Integer("ec", -1, "fail when the status is another one"),
		who:      f.CredentialsNamed(),
		tls:      f.TLSFiles(),
	}
	if err := c.parse(1, 1); err != nil {
		return err
	}
	r.url = c.args[0]
	req, err := r.message(ctx)
	if err != nil {
		return err
	}
	return r.exchange(req)
}

// failed makes an error in the form that scripts know.
func (r *requester) failed(status int, what string) error {
	return fmt.Errorf("%s: error: %d: %s", r.url, status, what)
}

func (r *requester) method() string {
	switch {
	case *r.get:
		return http.MethodGet
	case *r.head:
		return http.MethodHead
	case *r.post:
		return http.MethodPost
	case *r.put:
		return http.MethodPut
	case *r.del:
		return http.MethodDelete
	}
	return http.MethodGet
}

// message makes the request.
func (r *requester) message(ctx context.Context) (*http.Request, error) {
	target, err := url.Parse(r.url)
	if err != nil || target.Scheme != "http" && target.Scheme != "https" || target.Host == "" {
		return nil, r.failed(-1, "[invalid URL expression]")
	}
	for _, q := range *r.query {
		if target.RawQuery != "" {
			target.RawQuery += "&"
		}
		target.RawQuery += url.QueryEscape(q[0]) + "=" + strings.ReplaceAll(url.QueryEscape(q[1]), "+", "%20")
	}
	body, err := r.content()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, r.method(), target.String(), strings.NewReader(string(body)))
	if err != nil {
		return nil, r.failed(-1, "[invalid URL expression]")
	}
	req.Header.Set("User-Agent", program)
	for _, h := range *r.headers {
		req.Header.Add(h[0], h[1])
		if strings.EqualFold(h[0], "Host") {
			req.Host = h[1]
		}
	}
	return req, r.authorize(req)
}

// authorize adds credentials if an option names some. Credentials of the environment alone are not
// used: the URL may belong to anybody.
func (r *requester) authorize(req *http.Request) error {
	named, err := r.who.ReadNamed()
	switch {
	case err != nil || !named:
		return err
	case req.Header.Get("Authorization") != "":
		return usageError("-ah Authorization takes the place of -user, -password-file and -token-file")
	case r.who.Token != "":
		req.Header.Set("Authorization", "Bearer "+r.who.Token)
	case r.who.User != "":
		req.SetBasicAuth(r.who.User, r.who.Password)
	default:
		return usageError("-user is missing, or the first line of the token's file is empty")
	}
	return nil
}

// content returns the body of the request.
func (r *requester) content() ([]byte, error) {
	text, literal := strings.CutPrefix(*r.body, "@")
	switch {
	case literal:
		return []byte(text), nil
	case text != "":
		return readFile(text)
	case *r.post || *r.put:
		return io.ReadAll(r.stdin)
	}
	return nil, nil
}

// exchange sends the request and prints the reply. It follows no redirect and makes no second
// attempt.
func (r *requester) exchange(req *http.Request) error {
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	if req.URL.Scheme == "https" {
		config, err := r.tls.Trust(req.URL.Hostname())
		if err != nil {
			return err
		}
		transport.TLSClientConfig = config
	}
	client := http.Client{
		Timeout:       max(0, *r.timeout),
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return r.failed(-1, "["+why(err)+"]")
	}
	defer resp.Body.Close()
	if *r.expected >= 0 && int64(resp.StatusCode) != *r.expected {
		return r.failed(resp.StatusCode, resp.Proto+" "+resp.Status)
	}
	if resp.Close { // net/http takes the header away
		resp.Header.Set("Connection", "close")
	}
	if *r.showHead {
		fmt.Fprintf(r.out, "%s %s\n", resp.Proto, resp.Status)
		for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
			for _, value := range resp.Header[name] {
				fmt.Fprintf(r.out, "%s: %s\n", name, value)
			}
		}
		fmt.Fprintln(r.out)
	}
	if _, err := io.Copy(r.out, resp.Body); err != nil {
		return r.failed(-1, "["+why(err)+"]")
	}
	return nil
}

// why returns the cause of an error of net/http without the words around it.
func why(err error) string {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "connection refused"
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	return err.Error()
}
