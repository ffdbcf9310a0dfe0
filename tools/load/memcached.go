package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The text protocol of memcached. A bulk get is one command; a bulk set, and a bulk remove, is as
// many as there are records, sent together.

func checkMemcached(l *Load) error {
	const mostKey = 250
	switch {
	case l.DB != "":
		return errors.New("memcached's protocol knows no databases")
	case l.Header != "":
		return errors.New("memcached's text protocol has no credentials")
	case len(l.Prefix) > mostKey/2:
		return errors.New("the prefix of keys is too long for memcached")
	}
	return nil
}

func writeMemcached(out []byte, _ *Load, r *request) []byte {
	switch r.operation {
	case Get, GetBulk:
		out = append(out, "get"...)
		for _, key := range r.keys {
			out = append(append(out, ' '), key...)
		}
		return append(out, "\r\n"...)
	case Increment:
		return append(append(append(out, "incr "...), r.keys[0]...), " 1\r\n"...)
	}
	for _, key := range r.keys {
		if r.operation == removeBulk {
			out = append(append(append(out, "delete "...), key...), "\r\n"...)
			continue
		}
		out = append(append(append(out, "set "...), key...), " 0 0 "...)
		out = append(strconv.AppendInt(out, int64(len(r.value)), 10), "\r\n"...)
		out = append(append(out, r.value...), "\r\n"...)
	}
	return out
}

func readMemcached(in *bufio.Reader, r *request) (o outcome, err error) {
	switch r.operation {
	case Get, GetBulk:
		found, err := readValues(in)
		o.missing = r.operation == Get && found == 0
		return o, err
	case Increment:
		line, err := readLine(in)
		if err == nil && (line == "" || line[0] < '0' || line[0] > '9') {
			err = refused(strconv.Quote(line))
		}
		return o, err
	}
	var problem error
	for range r.keys {
		line, err := readLine(in)
		if err != nil {
			return o, err
		}
		if line != "STORED" && line != "DELETED" && line != "NOT_FOUND" {
			problem = refused(strconv.Quote(line))
		}
	}
	return o, problem
}

// readValues reads the reply to a get, and returns the number of its values.
func readValues(in *bufio.Reader) (n int, err error) {
	for {
		line, err := readLine(in)
		if err != nil || line == "END" {
			return n, err
		}
		var key string
		var flags, size int
		if _, err := fmt.Sscanf(line, "VALUE %s %d %d", &key, &flags, &size); err != nil {
			return n, refused(strconv.Quote(line))
		}
		if _, err := in.Discard(size + len("\r\n")); err != nil {
			return n, err
		}
		n++
	}
}

func readLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	return string(bytes.TrimRight(line, "\r\n")), nil
}

// MemcachedItems asks a server of memcached's protocol for the number of its items.
func MemcachedItems(conn io.ReadWriter) (n int64, err error) {
	if _, err := io.WriteString(conn, "stats\r\n"); err != nil {
		return 0, err
	}
	in := bufio.NewReader(conn)
	n = -1
	for {
		line, err := readLine(in)
		if err != nil {
			return 0, fmt.Errorf("asking for the number of items: %w", err)
		}
		if line == "END" {
			break
		}
		if text, ok := strings.CutPrefix(line, "STAT curr_items "); ok {
			if n, err = strconv.ParseInt(text, 10, 64); err != nil {
				return 0, fmt.Errorf("number of items: %w", err)
			}
		}
	}
	if n < 0 {
		return 0, errors.New("the server does not tell how many items it has")
	}
	return n, nil
}
