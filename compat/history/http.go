package history

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// HTTP is a connection of HTTP, with procedures or with the verbs of REST.
type HTTP struct {
	conn net.Conn
	in   *bufio.Reader
	rest bool

	limit time.Duration // of one request
}

// DialHTTP opens a connection; limit is how long a request of Ask may take.
func DialHTTP(port int, limit time.Duration) (*HTTP, error) {
	conn, err := Dial(port)
	if err != nil {
		return nil, err
	}
	return &HTTP{conn: conn, in: bufio.NewReader(conn), limit: limit}, nil
}

// Close closes the connection.
func (w *HTTP) Close() { _ = w.conn.Close() }

// Can tells what Ask can do.
func (w *HTTP) Can(v Verb) bool { return !w.rest || v == Get || v == Set || v == Remove }

// Ask makes a request.
func (w *HTTP) Ask(c Call) Reply {
	if w.rest {
		return w.askREST(c)
	}
	fields := []string{"key", c.Key}
	name := c.Verb.String()
	switch c.Verb {
	case Set, Add, Append:
		fields = append(fields, "value", c.Value)
	case Cas:
		fields = append(fields, "nval", c.Value)
		if c.Old != "" {
			fields = append(fields, "oval", c.Old)
		}
	case Incr, Bump:
		name = "increment"
		fields = append(fields, "num", strconv.Itoa(c.By))
		if c.Verb == Bump {
			fields = append(fields, "orig", "try") // only where there is a record
		}
	}
	status, out, err := w.Procedure(name, w.limit, fields...)
	if err != nil {
		return Reply{}
	}
	return answer(c.Verb, status, out)
}

func answer(v Verb, status int, out map[string]string) Reply {
	fault := out["ERROR"]
	switch {
	case status == http.StatusOK && v == Get:
		return Reply{Certainty: Done, OK: true, Value: Number(out["value"])}
	case status == http.StatusOK:
		return Reply{Certainty: Done, OK: true, Value: out["num"]}
	case strings.Contains(fault, "DB: 6:"), strings.Contains(fault, "DB: 7:"), strings.Contains(fault, "DB: 8:"):
		return Reply{Certainty: Done}
	}
	return failed(fault)
}

// Number shows the eight bytes of a counter as decimal text.
func Number(value string) string {
	if len(value) == 8 && value[0] == 0 {
		return strconv.FormatUint(binary.BigEndian.Uint64([]byte(value)), 10)
	}
	return value
}

// Procedure calls a procedure with names and values.
func (w *HTTP) Procedure(name string, limit time.Duration, fields ...string) (status int, out map[string]string, err error) {
	var body strings.Builder
	for i := 0; i < len(fields); i += 2 {
		body.WriteString(fields[i] + "\t" + fields[i+1] + "\n")
	}
	req := fmt.Sprintf("POST /rpc/%s HTTP/1.1\r\nHost: x\r\nContent-Type: text/tab-separated-values\r\nContent-Length: %d\r\n\r\n%s", name, body.Len(), body.String())
	resp, text, err := w.exchange(req, limit)
	if err != nil {
		return 0, nil, err
	}
	out = map[string]string{}
	_, encoding, _ := strings.Cut(resp.Header.Get("Content-Type"), "colenc=")
	for line := range strings.SplitSeq(text, "\n") {
		name, value, found := strings.Cut(line, "\t")
		if !found {
			continue
		}
		switch encoding {
		case "B":
			name, value = decode(name), decode(value)
		case "U": // as of long texts
			name, value = unescape(name), unescape(value)
		}
		out[name] = value
	}
	return resp.StatusCode, out, nil
}

func unescape(text string) string {
	plain, err := url.PathUnescape(text)
	if err != nil {
		return text
	}
	return plain
}

func decode(text string) string {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return text
	}
	return string(b)
}

func (w *HTTP) exchange(req string, limit time.Duration) (*http.Response, string, error) {
	_ = w.conn.SetDeadline(time.Now().Add(limit))
	if _, err := io.WriteString(w.conn, req); err != nil {
		return nil, "", err
	}
	method, _, _ := strings.Cut(req, " ")
	resp, err := http.ReadResponse(w.in, &http.Request{Method: method})
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

func (w *HTTP) askREST(c Call) Reply {
	var req string
	switch c.Verb {
	case Get:
		req = fmt.Sprintf("GET /%s HTTP/1.1\r\nHost: x\r\n\r\n", c.Key)
	case Set:
		req = fmt.Sprintf("PUT /%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", c.Key, len(c.Value), c.Value)
	case Remove:
		req = fmt.Sprintf("DELETE /%s HTTP/1.1\r\nHost: x\r\n\r\n", c.Key)
	}
	resp, body, err := w.exchange(req, w.limit)
	if err != nil {
		return Reply{}
	}
	switch {
	case resp.StatusCode == http.StatusOK && c.Verb == Get:
		return Reply{Certainty: Done, OK: true, Value: Number(body)}
	case resp.StatusCode == http.StatusCreated, resp.StatusCode == http.StatusNoContent:
		return Reply{Certainty: Done, OK: true}
	case resp.StatusCode == http.StatusNotFound:
		return Reply{Certainty: Done}
	}
	var head strings.Builder
	_ = resp.Header.Write(&head)
	return failed(head.String() + body)
}

// Get gets a page, and returns its status and text.
func (w *HTTP) Get(path string) (status int, text string, err error) {
	resp, text, err := w.exchange("GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n", w.limit)
	if err != nil {
		return 0, "", err
	}
	return resp.StatusCode, text, nil
}
