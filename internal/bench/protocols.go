//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// keyMaker appends the key that belongs to a random number.
type keyMaker func(out []byte, random uint64) []byte

// smallKeys are key0 to key99999, as wrk and redis-benchmark use them in the other measurements.
func smallKeys(out []byte, random uint64) []byte {
	return strconv.AppendUint(append(out, "key"...), random%keySpace, 10)
}

func httpSet(keys keyMaker) protocol {
	rest := fmt.Sprintf(" HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", valueSize, strings.Repeat("x", valueSize))
	return protocol{reply: httpReply, request: func(out []byte, s shot) []byte {
		return append(keys(append(out, "PUT /"...), s.random), rest...)
	}}
}

func httpGet(keys keyMaker) protocol {
	return protocol{reply: httpReply, request: func(out []byte, s shot) []byte {
		return append(keys(append(out, "GET /"...), s.random), " HTTP/1.1\r\nHost: localhost\r\n\r\n"...)
	}}
}

// httpReply wants a status 2xx; a record that is missing would make a get cheap.
func httpReply(in []byte) (int, error) {
	head := bytes.Index(in, []byte("\r\n\r\n"))
	if head < 0 {
		return 0, nil
	}
	if !bytes.HasPrefix(in, []byte("HTTP/1.1 2")) {
		return 0, fmt.Errorf("reply %q", in)
	}
	const name = "ength: " // of Content-Length, or Content-length as the services have it
	length := 0
	if at := bytes.Index(in[:head], []byte(name)); at >= 0 {
		digits, _, _ := bytes.Cut(in[at+len(name):], []byte("\r\n"))
		n, err := strconv.Atoi(string(digits))
		if err != nil {
			return 0, fmt.Errorf("reply %q: %w", in, err)
		}
		length = n
	}
	return whole(in, head+4+length)
}

func redisSet() protocol {
	rest := fmt.Sprintf("$%d\r\n%s\r\n", valueSize, strings.Repeat("x", valueSize))
	return protocol{request: func(out []byte, s shot) []byte {
		return append(redisKey(append(out, "*3\r\n$3\r\nSET\r\n"...), s.random), rest...)
	}, reply: lineReply("+OK\r\n")}
}

func redisGet() protocol {
	return protocol{request: func(out []byte, s shot) []byte {
		return redisKey(append(out, "*2\r\n$3\r\nGET\r\n"...), s.random)
	}, reply: func(in []byte) (int, error) {
		want := fmt.Sprintf("$%d\r\n", valueSize)
		if len(in) < len(want) {
			return 0, wrongStart(in, want)
		}
		if err := wrongStart(in[:len(want)], want); err != nil {
			return 0, err
		}
		return whole(in, len(want)+valueSize+2)
	}}
}

func redisKey(out []byte, random uint64) []byte {
	var room [32]byte
	key := smallKeys(room[:0], random)
	out = strconv.AppendInt(append(out, '$'), int64(len(key)), 10)
	return append(append(append(out, "\r\n"...), key...), "\r\n"...)
}

func httpPath(path string) protocol {
	return protocol{reply: httpReply, request: func(out []byte, _ shot) []byte {
		return append(append(append(out, "GET "...), path...), " HTTP/1.1\r\nHost: localhost\r\n\r\n"...)
	}}
}

func memcachedSet(keys keyMaker) protocol {
	rest := fmt.Sprintf(" 0 0 %d\r\n%s\r\n", valueSize, strings.Repeat("x", valueSize))
	return protocol{reply: lineReply("STORED\r\n"), request: func(out []byte, s shot) []byte {
		return append(keys(append(out, "set "...), s.random), rest...)
	}}
}

func memcachedGet(keys keyMaker) protocol {
	return protocol{request: func(out []byte, s shot) []byte {
		return append(keys(append(out, "get "...), s.random), "\r\n"...)
	}, reply: func(in []byte) (int, error) {
		if bytes.HasPrefix(in, []byte("END\r\n")) {
			return 0, errors.New("memcached: a record is missing")
		}
		if err := wrongStart(in[:min(len(in), 6)], "VALUE "); err != nil || !bytes.HasSuffix(in, []byte("\r\nEND\r\n")) {
			return 0, err
		}
		return len(in), nil
	}}
}

// lockTurns takes and releases a lock, a key for each connection.
func lockTurns() protocol {
	words := [2]string{"lock key-", "release key-"}
	return protocol{request: func(out []byte, s shot) []byte {
		return append(strconv.AppendInt(append(out, words[s.number%2]...), int64(s.conn), 10), '\n')
	}, reply: func(in []byte) (int, error) {
		return bytes.IndexByte(in, '\n') + 1, nil
	}}
}

// lockOne takes and releases one lock for which all connections wait.
func lockOne() protocol {
	words := [2]string{"lock key\n", "release key\n"}
	granted, released := "GRANTED ", "RELEASED "
	return protocol{inTwos: true, request: func(out []byte, s shot) []byte {
		return append(out, words[s.number%2]...)
	}, reply: func(in []byte) (int, error) {
		end := bytes.IndexByte(in, '\n') + 1
		if end > 0 && !bytes.HasPrefix(in, []byte(granted)) && !bytes.HasPrefix(in, []byte(released)) {
			return 0, fmt.Errorf("reply %q", in)
		}
		return end, nil
	}}
}

// redisToken takes a token for which all connections wait, and puts it back: what programs without
// a lock server make of redis. The token is the only member of a sorted set, since to put it back
// twice would not make two of it.
func redisToken() protocol {
	words := [2]string{"*3\r\n$8\r\nBZPOPMIN\r\n$5\r\ntoken\r\n$1\r\n0\r\n", "*4\r\n$4\r\nZADD\r\n$5\r\ntoken\r\n$1\r\n0\r\n$1\r\nx\r\n"}
	taken := lineReply("*3\r\n$5\r\ntoken\r\n$1\r\nx\r\n$1\r\n0\r\n")
	back := lineReply(":1\r\n")
	return protocol{inTwos: true, request: func(out []byte, s shot) []byte {
		return append(out, words[s.number%2]...)
	}, reply: func(in []byte) (int, error) {
		if in[0] == ':' {
			return back(in)
		}
		return taken(in)
	}}
}

// redisTokenThere puts the token of redisToken there.
func redisTokenThere() protocol {
	put := redisToken().request(nil, shot{number: 1})
	return protocol{request: func(out []byte, _ shot) []byte { return append(out, put...) }, reply: func(in []byte) (int, error) {
		return bytes.IndexByte(in, '\n') + 1, nil
	}}
}

// lineReply wants this reply and nothing else.
func lineReply(want string) func([]byte) (int, error) {
	return func(in []byte) (int, error) {
		if len(in) < len(want) {
			return 0, wrongStart(in, want)
		}
		return len(want), wrongStart(in[:len(want)], want)
	}
}

// wrongStart is an error unless in is how want begins.
func wrongStart(in []byte, want string) error {
	if strings.HasPrefix(want, string(in)) {
		return nil
	}
	return fmt.Errorf("reply %q instead of %q", in, want)
}

func whole(in []byte, size int) (int, error) {
	if len(in) < size {
		return 0, nil
	}
	return size, nil
}
