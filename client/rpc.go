package client

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"gotycoon/client/wire/tsv"
)

// call sends a procedure call and reads its rows.
func (cn *conn) call(proc string, in []tsv.Row) (Rows, error) {
	cn.out = appendCall(cn.out[:0], cn.auth, proc, in)
	if err := cn.send(); err != nil {
		return nil, cn.refusal(err)
	}
	return cn.reply()
}

// refusal handles a request that could not be sent to its end. The server may have closed the
// connection because the request was too large, and have said so first. Without such a reply,
// refusal returns sendErr.
func (cn *conn) refusal(sendErr error) error {
	_, err := cn.reply()
	cn.broken = true
	if err == nil || errors.Is(err, ErrNetwork) {
		return sendErr
	}
	return err
}

// appendCall appends a request, in an encoding that suits its columns, with one additional header
// line. Of several rows with the same name the last counts.
func appendCall(b []byte, header, proc string, params []tsv.Row) []byte {
	var unique tsv.Rows
	for _, row := range params {
		unique.Add(row.Name, row.Value)
	}
	unique.Sort()
	enc := unique.Choose()
	b = append(b, "POST /rpc/"...)
	b = tsv.AppendURL(b, []byte(proc))
	b = append(b, " HTTP/1.1\r\nHost: gotycoon\r\n"...)
	b = append(append(b, header...), "Content-Type: "...)
	b = append(b, enc.ContentType()...)
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(unique.EncodedLen(enc)), 10)
	b = append(b, "\r\n\r\n"...)
	return unique.AppendEncoded(b, enc)
}

// reply reads the reply to the oldest call that has none yet.
func (cn *conn) reply() (Rows, error) {
	cn.broken = true // until it has been read
	res, err := http.ReadResponse(cn.in, nil)
	if err != nil {
		return nil, networkError(err)
	}
	var body bytes.Buffer
	body.Grow(int(min(max(0, res.ContentLength), keepOutBytes)) + bytes.MinRead)
	if _, err := body.ReadFrom(res.Body); err != nil {
		return nil, networkError(err)
	}
	cn.broken = res.Close
	out := decodeRows(body.Bytes(), res.Header.Get("Content-Type"))
	if res.StatusCode != http.StatusOK {
		return out, callError(res, errorText(res, out, body.Bytes()))
	}
	if kind := res.Header.Get("Content-Type"); kind != "" && !strings.HasPrefix(kind, "text/tab-separated-values") {
		return out, wrongServer(fmt.Sprintf("a page of the type %q", kind))
	}
	return out, nil
}

// maxErrorText limits the text of an error from another kind of server or a proxy, in bytes.
const maxErrorText = 200

// errorText returns the text of an error reply, "" if there is none.
func errorText(res *http.Response, rows Rows, body []byte) string {
	if text, ok := rows["ERROR"]; ok || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		return string(text)
	}
	line, _, _ := bytes.Cut(body, []byte("\n"))
	if line = bytes.TrimSpace(line); len(line) == 0 || len(line) > maxErrorText {
		return ""
	}
	return res.Status + ": " + string(line)
}

// Rows are the results of a procedure, by name.
type Rows map[string][]byte

func decodeRows(body []byte, contentType string) Rows {
	var rows tsv.Rows
	tsv.Decode(&rows, body, contentType)
	out := make(Rows, rows.Len())
	for row := range rows.All() {
		out[string(row.Name)] = row.Value
	}
	return out
}

// Int returns a row as a number, 0 if there is no such row.
func (r Rows) Int(name string) int64 {
	n, err := strconv.ParseInt(string(r[name]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
