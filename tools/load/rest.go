package load

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/url"
	"strconv"
)

// writeREST makes requests with the verbs of HTTP. What has no verb is a procedure.
func writeREST(out []byte, l *Load, r *request) []byte {
	verb := map[Operation]string{Set: "PUT /", Get: "GET /"}[r.operation]
	if verb == "" {
		return writeRPC(out, l, r)
	}
	out = append(out, verb...)
	if l.DB != "" {
		out = append(append(out, url.PathEscape(l.DB)...), '/')
	}
	out = append(append(append(out, r.keys[0]...), " HTTP/1.1\r\nHost: bench\r\n"...), l.Header...)
	if r.operation == Set {
		return appendBody(out, []byte(r.value))
	}
	return append(out, "\r\n"...)
}

// writeRPC makes calls of procedures. Keys and values need no encoding, see prefixLetters and
// valueText.
func writeRPC(out []byte, l *Load, r *request) []byte {
	name := [operations]string{"set", "get", "increment", "set_bulk", "get_bulk", "remove_bulk"}[r.operation]
	out = append(append(append(out, "POST /rpc/"...), name...), " HTTP/1.1\r\nHost: bench\r\nContent-Type: text/tab-separated-values\r\n"...)
	out = append(out, l.Header...)
	var body []byte
	if l.DB != "" {
		body = append(append(append(body, "DB\t"...), l.DB...), '\n')
	}
	for _, key := range r.keys {
		switch r.operation {
		case Set, Get, Increment:
			body = append(append(append(body, "key\t"...), key...), '\n')
		default:
			body = append(append(append(body, '_'), key...), '\t')
			if r.operation == SetBulk {
				body = append(body, r.value...)
			}
			body = append(body, '\n')
		}
	}
	switch r.operation {
	case Set:
		body = append(append(append(body, "value\t"...), r.value...), '\n')
	case Increment:
		body = append(body, "num\t1\n"...)
	}
	return appendBody(out, body)
}

func appendBody(out, body []byte) []byte {
	out = strconv.AppendInt(append(out, "Content-Length: "...), int64(len(body)), 10)
	return append(append(out, "\r\n\r\n"...), body...)
}

// readHTTP reads a reply.
func readHTTP(in *bufio.Reader, r *request) (o outcome, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return o, err
	}
	if len(line) < len("HTTP/1.1 200") || !bytes.HasPrefix(line, []byte("HTTP/1.")) {
		return o, fmt.Errorf("no reply of HTTP: %q", line)
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return o, fmt.Errorf("no reply of HTTP: %q", line)
	}
	head := string(line)
	if status < 300 {
		head = ""
	}
	length := 0
	for {
		if line, err = in.ReadSlice('\n'); err != nil {
			return o, err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		const name = "content-length:"
		if len(line) > len(name) && bytes.EqualFold(line[:len(name)], []byte(name)) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(name):]))); err != nil {
				return o, fmt.Errorf("length of a reply: %w", err)
			}
		}
	}
	switch {
	case status < 300:
		_, err = in.Discard(length)
		return o, err
	case r.operation == Get && (status == 404 || status == 450):
		o.missing = true
		_, err = in.Discard(length)
		return o, err
	}
	body, err := io.ReadAll(io.LimitReader(in, int64(length)))
	if err != nil {
		return o, err
	}
	if text := bytes.TrimSpace(body); len(text) > 0 {
		head += ": " + string(text)
	}
	return o, refused(fmt.Sprintf("%q", head))
}
