package cluster

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

// httpWire speaks HTTP, with procedures or with the verbs of REST.
type httpWire struct {
	conn net.Conn
	in   *bufio.Reader
	rest bool

	limit time.Duration // of one request
}

func dialHTTP(m *member, limit time.Duration, rest bool) (wire, error) {
	conn, err := dial(m.port)
	if err != nil {
		return nil, err
	}
	return &httpWire{conn: conn, in: bufio.NewReader(conn), limit: limit, rest: rest}, nil
}

func (w *httpWire) close() { _ = w.conn.Close() }

func (w *httpWire) can(v verb) bool { return !w.rest || v == get || v == set || v == remove }

func (w *httpWire) ask(c call) reply {
	if w.rest {
		return w.askREST(c)
	}
	fields := []string{"key", c.key}
	name := c.verb.String()
	switch c.verb {
	case set:
		fields = append(fields, "value", c.value)
	case cas:
		fields = append(fields, "nval", c.value)
		if c.old != "" {
			fields = append(fields, "oval", c.old)
		}
	case incr, bump:
		name = "increment"
		fields = append(fields, "num", strconv.Itoa(c.by))
		if c.verb == bump {
			fields = append(fields, "orig", "try") // only where there is a record
		}
	}
	status, out, err := w.procedure(name, w.limit, fields...)
	if err != nil {
		return doubtful
	}
	return answer(c.verb, status, out)
}

func answer(v verb, status int, out map[string]string) reply {
	fault := out["ERROR"]
	switch {
	case status == http.StatusOK && v == get:
		return reply{certainty: done, ok: true, value: number(out["value"])}
	case status == http.StatusOK:
		return reply{certainty: done, ok: true, value: out["num"]}
	case strings.Contains(fault, "DB: 7:"), strings.Contains(fault, "DB: 8:"):
		return reply{certainty: done}
	}
	return failed(fault)
}

// number shows the eight bytes of a counter as decimal text.
func number(value string) string {
	if len(value) == 8 && value[0] == 0 {
		return strconv.FormatUint(binary.BigEndian.Uint64([]byte(value)), 10)
	}
	return value
}

// procedure calls a procedure with names and values.
func (w *httpWire) procedure(name string, limit time.Duration, fields ...string) (status int, out map[string]string, err error) {
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

func (w *httpWire) exchange(req string, limit time.Duration) (*http.Response, string, error) {
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

func (w *httpWire) askREST(c call) reply {
	var req string
	switch c.verb {
	case get:
		req = fmt.Sprintf("GET /%s HTTP/1.1\r\nHost: x\r\n\r\n", c.key)
	case set:
		req = fmt.Sprintf("PUT /%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", c.key, len(c.value), c.value)
	case remove:
		req = fmt.Sprintf("DELETE /%s HTTP/1.1\r\nHost: x\r\n\r\n", c.key)
	}
	resp, body, err := w.exchange(req, w.limit)
	if err != nil {
		return doubtful
	}
	switch {
	case resp.StatusCode == http.StatusOK && c.verb == get:
		return reply{certainty: done, ok: true, value: number(body)}
	case resp.StatusCode == http.StatusCreated, resp.StatusCode == http.StatusNoContent:
		return reply{certainty: done, ok: true}
	case resp.StatusCode == http.StatusNotFound:
		return reply{certainty: done}
	}
	var head strings.Builder
	_ = resp.Header.Write(&head)
	return failed(head.String() + body)
}
