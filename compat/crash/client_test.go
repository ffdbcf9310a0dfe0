package crash

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"gotycoon/client/wire/frame"
	"gotycoon/db/record"
)

// client is a connection to the server.
type client struct {
	net.Conn
	in *bufio.Reader
}

func dial(addr string) (*client, error) {
	c, err := net.Dial("tcp4", addr)
	if err != nil {
		return nil, err
	}
	return &client{c, bufio.NewReader(c)}, nil
}

// statusError is an answer that the server should not have given.
type statusError struct{ answer string }

func (e *statusError) Error() string { return "unexpected answer: " + e.answer }

// readHTTP reads a response with one of some status codes and returns its body.
func (c *client) readHTTP(codes ...int) (body string, err error) {
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if !slices.Contains(codes, resp.StatusCode) {
		return "", &statusError{resp.Status + ": " + string(text)}
	}
	return string(text), nil
}

// readReply reads the reply to a set_bulk or remove_bulk.
func (c *client) readReply(m frame.Magic) error {
	p := make([]byte, frame.ReplyLen)
	if _, err := io.ReadFull(c.in, p[:1]); err != nil {
		return err
	}
	if frame.Magic(p[0]) != m {
		return &statusError{fmt.Sprintf("%#x to %v", p[0], m)}
	}
	_, err := io.ReadFull(c.in, p[1:])
	return err
}

// rpc calls a procedure. Rows are names and values without tabs and line feeds.
func rpc(procedure string, rows ...string) []byte {
	var body strings.Builder
	for i := 0; i < len(rows); i += 2 {
		body.WriteString(rows[i] + "\t" + rows[i+1] + "\n")
	}
	return fmt.Appendf(nil, "POST /rpc/%s HTTP/1.1\r\nContent-Type: text/tab-separated-values\r\nContent-Length: %d\r\n\r\n%s",
		procedure, body.Len(), body.String())
}

func setBulk(dbidx uint16, changes []change) []byte {
	p := frame.AppendHeader(nil, frame.Header{Magic: frame.SetBulk, RNum: uint32(len(changes))})
	for _, c := range changes {
		p = frame.AppendRecord(p, frame.Record{DBIdx: dbidx, XT: int64(record.Never), Key: []byte(c.key), Value: []byte(c.value)})
	}
	return p
}

func removeBulk(dbidx uint16, changes []change) []byte {
	p := frame.AppendHeader(nil, frame.Header{Magic: frame.RemoveBulk, RNum: uint32(len(changes))})
	for _, c := range changes {
		p = frame.AppendKey(p, frame.Key{DBIdx: dbidx, Key: []byte(c.key)})
	}
	return p
}

// dump returns all records of a database, and what the server says their number is.
func dump(addr string, dbidx int) (records map[string]string, count string, err error) {
	c, err := dial(addr)
	if err != nil {
		return nil, "", err
	}
	defer c.Close()
	keys, count, err := c.keys(dbidx)
	if err != nil {
		return nil, "", err
	}
	records = map[string]string{}
	for part := range slices.Chunk(keys, 1000) {
		if err := c.get(records, dbidx, part); err != nil {
			return nil, "", err
		}
	}
	if len(records) != len(keys) {
		return nil, "", fmt.Errorf("%d keys are listed, %d records found", len(keys), len(records))
	}
	return records, count, nil
}

// keys lists the keys of a database.
func (c *client) keys(dbidx int) (keys []string, count string, err error) {
	database := fmt.Sprint(dbidx)
	request := append(rpc("status", "DB", database), rpc("match_prefix", "DB", database, "prefix", "")...)
	if _, err := c.Write(request); err != nil {
		return nil, "", err
	}
	status, err := c.readHTTP(http.StatusOK)
	if err != nil {
		return nil, "", err
	}
	body, err := c.readHTTP(http.StatusOK)
	if err != nil {
		return nil, "", err
	}
	for line := range strings.Lines(body) {
		if key, ok := strings.CutPrefix(line, "_"); ok {
			key, _, _ = strings.Cut(key, "\t")
			keys = append(keys, key)
		}
	}
	_, count, _ = strings.Cut("\n"+status, "\ncount\t")
	count, _, _ = strings.Cut(count, "\n")
	return keys, count, nil
}

// get adds the records of keys.
func (c *client) get(records map[string]string, dbidx int, keys []string) error {
	p := frame.AppendHeader(nil, frame.Header{Magic: frame.GetBulk, RNum: uint32(len(keys))})
	for _, key := range keys {
		p = frame.AppendKey(p, frame.Key{DBIdx: uint16(dbidx), Key: []byte(key)})
	}
	if _, err := c.Write(p); err != nil {
		return err
	}
	head := make([]byte, frame.ReplyLen)
	if _, err := io.ReadFull(c.in, head); err != nil {
		return err
	}
	for range binary.BigEndian.Uint32(head[1:]) {
		if err := c.readRecord(records); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) readRecord(records map[string]string) error {
	var p []byte
	for {
		r, n, err := frame.DecodeRecord(p)
		if err == nil {
			records[string(r.Key)] = string(r.Value)
			return nil
		}
		have := len(p)
		p = append(p, make([]byte, n-have)...)
		if _, err := io.ReadFull(c.in, p[have:]); err != nil {
			return err
		}
	}
}
