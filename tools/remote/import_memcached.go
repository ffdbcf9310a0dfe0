package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gotycoon/client"
)

// memcachedSource is a running memcached. It lists its keys on one connection (lru_crawler
// metadump), and gives their values on another one. What clients store meanwhile may be missed.
type memcachedSource struct {
	addr  string
	flags bool          // put the flags behind the value
	limit time.Duration // for each wait

	keys, values *bufio.ReadWriter
	expires      map[string]client.Expiry // of the keys whose values are asked for next
}

// keysAtOnce is how many values are asked for together.
const keysAtOnce = 64

func (s *memcachedSource) read(ctx context.Context, to sink) (err error) {
	for _, conn := range []**bufio.ReadWriter{&s.keys, &s.values} {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
		if err != nil {
			return &lostServer{"memcached " + s.addr, err}
		}
		defer c.Close()
		defer context.AfterFunc(ctx, func() { _ = c.Close() })() // ends a read
		limited := &timedConn{c, s.limit}
		*conn = bufio.NewReadWriter(bufio.NewReaderSize(limited, importBuffer), bufio.NewWriter(limited))
	}
	s.expires = map[string]client.Expiry{}
	err = s.list(ctx, to)
	if _, ok := errors.AsType[*client.Error](err); err == nil || ok { // ok: of the server that is imported to
		return err
	}
	return &lostServer{"memcached " + s.addr, err}
}

// timedConn limits each wait for the other side.
type timedConn struct {
	net.Conn
	limit time.Duration
}

func (c *timedConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// list reads the list of keys: lines "key=KEY exp=SECONDS la=… cas=… …", and END. Keys are
// percent-encoded; an exp of -1 means never.
func (s *memcachedSource) list(ctx context.Context, to sink) error {
	_, _ = s.keys.WriteString("lru_crawler metadump all\r\n") // Flush returns the error
	if err := s.keys.Flush(); err != nil {
		return err
	}
	for {
		line, err := s.keys.ReadString('\n')
		if err != nil {
			return fmt.Errorf("the answer to lru_crawler metadump: %w", err)
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "END" {
			return s.fetch(ctx, to)
		}
		fields := map[string]string{}
		for word := range strings.FieldsSeq(line) {
			name, value, _ := strings.Cut(word, "=")
			fields[name] = value
		}
		key, err := url.PathUnescape(fields["key"])
		seconds, numberErr := strconv.ParseInt(fields["exp"], 10, 64)
		if err != nil || numberErr != nil || key == "" {
			return fmt.Errorf("the answer to lru_crawler metadump is %q: it needs memcached 1.4.31 or later, with its LRU crawler on and not busy; is this the port of a memcached?", line)
		}
		s.expires[key] = to.never()
		if seconds > 0 {
			s.expires[key] = client.Expiry(-seconds)
		}
		if len(s.expires) == keysAtOnce {
			if err := s.fetch(ctx, to); err != nil {
				return err
			}
		}
	}
}

// fetch stores the values of the gathered keys. Of a key that has gone meanwhile there is none.
func (s *memcachedSource) fetch(ctx context.Context, to sink) error {
	if len(s.expires) == 0 {
		return nil
	}
	_, _ = s.values.WriteString("get") // Flush returns the error, of all three
	for key := range s.expires {
		_, _ = s.values.WriteString(" " + key)
	}
	_, _ = s.values.WriteString("\r\n")
	if err := s.values.Flush(); err != nil {
		return err
	}
	for {
		line, err := s.values.ReadString('\n')
		if err != nil {
			return err
		}
		words := strings.Fields(line)
		if len(words) == 1 && words[0] == "END" {
			clear(s.expires)
			return nil
		}
		if len(words) != 4 || words[0] != "VALUE" {
			return fmt.Errorf("the answer to get is %q", line)
		}
		if err := s.value(ctx, to, words[1], words[2], words[3]); err != nil {
			return err
		}
	}
}

// value reads a value, and stores it.
func (s *memcachedSource) value(ctx context.Context, to sink, key, flagsText, sizeText string) error {
	flags, err := strconv.ParseUint(flagsText, 10, 32)
	size, sizeErr := strconv.ParseInt(sizeText, 10, 32)
	if err = errors.Join(err, sizeErr); err != nil {
		return err
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, s.values, size+2); err != nil {
		return err
	}
	value := b.Bytes()[:size]
	if s.flags {
		value = binary.BigEndian.AppendUint32(value, uint32(flags))
	}
	return to.put(ctx, change{key: key, value: value, xt: s.expires[key]}, len(key)+len(value))
}
