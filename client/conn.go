package client

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"gotycoon/httpapi/tsv"
)

// conn is a connection to the server. HTTP and binary requests may alternate on it.
type conn struct {
	net.Conn
	in     *bufio.Reader
	out    []byte // the request being made
	large  []byte // a part of a reply that is larger than in's buffer
	broken bool   // a reply was not read to its end
}

func dial(ctx context.Context, addr string) (*conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, networkError(err)
	}
	return &conn{Conn: nc, in: bufio.NewReaderSize(nc, 16<<10)}, nil
}

// during runs f, which an end of ctx interrupts.
func (cn *conn) during(ctx context.Context, f func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return networkError(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cn.SetDeadline(time.Unix(1, 0)) })
	err := f(cn)
	if !stop() { // the deadline has been set, now or soon
		cn.broken = true
		if err != nil {
			return networkError(ctx.Err())
		}
	}
	return err
}

// call sends a procedure call and reads its rows.
func (cn *conn) call(proc string, in []tsv.Row) (Rows, error) {
	cn.broken = true // until the reply has been read
	if err := cn.post(proc, in); err != nil {
		return nil, networkError(err)
	}
	res, err := http.ReadResponse(cn.in, nil)
	if err != nil {
		return nil, networkError(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, networkError(err)
	}
	cn.broken = res.Close
	var rows tsv.Rows
	tsv.Decode(&rows, body, res.Header.Get("Content-Type"))
	out := make(Rows, rows.Len())
	for _, row := range rows.List() {
		out[string(row.Name)] = row.Value
	}
	if res.StatusCode != http.StatusOK {
		return out, callError(res.StatusCode, string(out["ERROR"]))
	}
	return out, nil
}

// post sends a request with the encoding that its columns need. Of rows with one name the last counts.
func (cn *conn) post(proc string, params []tsv.Row) error {
	var unique tsv.Rows
	for _, row := range params {
		unique.Add(row.Name, row.Value)
	}
	unique.Sort()
	in := unique.List()
	enc := tsv.Choose(in)
	b := append(cn.out[:0], "POST /rpc/"...)
	b = append(b, proc...)
	b = append(b, " HTTP/1.1\r\nHost: gotycoon\r\nContent-Type: "...)
	b = append(b, enc.ContentType()...)
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(tsv.EncodedLen(in, enc)), 10)
	b = append(b, "\r\n\r\n"...)
	b = tsv.AppendEncoded(b, in, enc)
	cn.out = b
	_, err := cn.Write(b)
	return err
}

// Rows is the result of a procedure by name.
type Rows map[string][]byte

// Int returns a row as a number, 0 where there is none.
func (r Rows) Int(name string) int64 {
	n, err := strconv.ParseInt(string(r[name]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
