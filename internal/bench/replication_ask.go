//go:build linux

package main

import (
	"bufio"
	"errors"
	"math"
	"net"
	"strings"

	"gotycoon/client/wire/frame"
)

// asker stores and gets one record of a server.
type asker interface {
	set(value string) error
	get() (string, error) // "" where there is no record
	close()
}

// gotycoonAsker uses binary bulks of one record.
type gotycoonAsker struct {
	conn net.Conn
	in   *bufio.Reader
	key  []byte
	out  []byte
}

func askGotycoon(p *process) (asker, error) { return askFor(p, 0) }

// askFor returns a gotycoonAsker for the record with a number.
func askFor(p *process, n uint64) (*gotycoonAsker, error) {
	conn, err := net.Dial("tcp", p.addr())
	if err != nil {
		return nil, err
	}
	return &gotycoonAsker{conn: conn, in: bufio.NewReader(conn), key: key(n)}, nil
}

func (a *gotycoonAsker) close() { a.conn.Close() }

func (a *gotycoonAsker) set(value string) error {
	a.out = frame.AppendHeader(a.out[:0], frame.Header{Magic: frame.SetBulk, RNum: 1})
	a.out = frame.AppendRecord(a.out, frame.Record{Key: a.key, Value: []byte(value), XT: math.MaxInt64})
	_, err := a.ask(frame.SetBulk)
	return err
}

func (a *gotycoonAsker) get() (string, error) {
	a.out = frame.AppendHeader(a.out[:0], frame.Header{Magic: frame.GetBulk, RNum: 1})
	a.out = frame.AppendKey(a.out, frame.Key{Key: a.key})
	return a.ask(frame.GetBulk)
}

func (a *gotycoonAsker) ask(magic frame.Magic) (value string, err error) {
	if _, err := a.conn.Write(a.out); err != nil {
		return "", err
	}
	hits, n := uint32(0), 0
	if err := a.decode(func(p []byte) (size int, err error) {
		hits, n, err = frame.DecodeReply(p, magic)
		return n, err
	}); err != nil || magic != frame.GetBulk || hits == 0 {
		return "", err
	}
	err = a.decode(func(p []byte) (int, error) {
		r, n, err := frame.DecodeRecord(p)
		value = string(r.Value)
		return n, err
	})
	return value, err
}

// decode reads until decode has a whole part, and passes over it.
func (a *gotycoonAsker) decode(decode func([]byte) (int, error)) error {
	for {
		p, _ := a.in.Peek(a.in.Buffered()) // has them
		n, err := decode(p)
		if err != frame.ErrShort {
			_, _ = a.in.Discard(n) // has them
			return err
		}
		if _, err := a.in.Peek(len(p) + 1); err != nil {
			return err
		}
	}
}

// redisAsker uses the inline form of redis's requests.
type redisAsker struct {
	conn net.Conn
	in   *bufio.Reader
}

func askRedis(p *process) (asker, error) {
	conn, err := net.Dial("tcp", p.addr())
	if err != nil {
		return nil, err
	}
	return redisAsker{conn, bufio.NewReader(conn)}, nil
}

func (a redisAsker) close() { a.conn.Close() }

func (a redisAsker) set(value string) error {
	_, err := a.ask("SET key \"" + value + "\"\r\n")
	return err
}

func (a redisAsker) get() (string, error) {
	answer, err := a.ask("GET key\r\n")
	if err != nil || answer == "$-1" {
		return "", err
	}
	return a.line()
}

// ask returns the first line of the answer, which is all of it except of a get that finds a record.
func (a redisAsker) ask(request string) (string, error) {
	if _, err := a.conn.Write([]byte(request)); err != nil {
		return "", err
	}
	answer, err := a.line()
	if err == nil && strings.HasPrefix(answer, "-") {
		err = errors.New("redis: " + answer)
	}
	return answer, err
}

func (a redisAsker) line() (string, error) {
	line, err := a.in.ReadString('\n')
	return strings.TrimRight(line, "\r\n"), err
}
