//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// coconut compares sequence numbers and quotas with GETs of the same server.
func (b *bench) coconut() error {
	b.table("Sequence numbers and quotas over 64 connections, requests/s", "request", "rate", "of GET /key")
	p, err := start(b.server, "-port", "$PORT", "-le", "-ulog", "$DIR/ulog", "-sid", "1", "-services", "$DIR/services.kct",
		"-sequence-port", "$PORT1", "-quota-port", "$PORT2", "-quota-limit", "1000000000", ":")
	if err != nil {
		return err
	}
	defer p.stop() // a measurement's end
	if _, err := b.wrkScript(p, "http://"+p.addr(), `request = function() return wrk.format("PUT", "/key", nil, string.rep("x", 16)) end`, 1); err != nil {
		return err
	}
	gets := 0.0
	for _, row := range []struct{ name, addr, path string }{
		{"`GET /key`", p.addr(), "/key"},
		{"`/fetch`", p.further(1), "/fetch"},
		{"`/apply?amt=1`, logged before the reply", p.further(2), "/apply?amt=1"},
	} {
		rate, err := b.wrkScript(p, "http://"+row.addr, `request = function() return wrk.format("GET", "`+row.path+`") end`, 64)
		if err != nil {
			return err
		}
		if gets == 0 {
			gets = rate
		}
		b.row(row.name, rate, ratio(rate/gets))
	}
	return nil
}

// lock compares lock and release with GETs of the same server. The clients of both are goroutines
// of this process, so that both have the same cost of the load itself.
func (b *bench) lock() error {
	b.table("Locks over 64 connections, requests/s", "request", "rate", "of GET /key", "server CPU, µs/request")
	p, err := start(b.server, "-port", "$PORT", "-le", "-ulog", "$DIR/ulog", "-sid", "1", "-services", "$DIR/services.kct",
		"-lock-port", "$PORT1", ":")
	if err != nil {
		return err
	}
	defer p.stop() // a measurement's end
	if _, err := turns(p.addr(), [2]string{putKey, putKey}, "\r\n\r\n", time.Millisecond); err != nil {
		return err
	}
	gets := 0.0
	for _, row := range []struct {
		name, addr string
		requests   [2]string // sent alternately; %d is the connection
		end        string    // of a reply
	}{
		{"`GET /key`", p.addr(), [2]string{getKey, getKey}, "0123456789abcdef"},
		{"`lock` and `release`, a key each", p.further(1), [2]string{"lock key-%d\n", "release key-%d\n"}, "\n"},
		{"`lock-fenced` and `release`, a key each", p.further(1), [2]string{"lock-fenced key-%d\n", "release key-%d\n"}, "\n"},
		{"`lock` and `release`, one key, which all wait for", p.further(1), [2]string{"lock key\n", "release key\n"}, "\n"},
	} {
		before, err := p.cpu()
		if err != nil {
			return err
		}
		rate, err := turns(row.addr, row.requests, row.end, b.length)
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		after, err := p.cpu()
		if err != nil {
			return err
		}
		if gets == 0 {
			gets = rate
		}
		each := (after - before).Seconds() * 1e6 / (rate * b.length.Seconds())
		b.row(row.name, rate, ratio(rate/gets), fmt.Sprintf("%.1f", each))
	}
	return nil
}

const (
	putKey = "PUT /key HTTP/1.1\r\nContent-Length: 16\r\n\r\n0123456789abcdef"
	getKey = "GET /key HTTP/1.1\r\n\r\n"
)

// turns sends two requests alternately over 64 connections, each request after the reply to the one
// before, and returns requests per second.
func turns(addr string, requests [2]string, end string, length time.Duration) (float64, error) {
	const conns = 64
	var clients sync.WaitGroup
	counts, errs := make([]int, conns), make([]error, conns)
	begin := time.Now()
	for i := range conns {
		clients.Go(func() { counts[i], errs[i] = takeTurns(addr, i, requests, end, begin.Add(length)) })
	}
	clients.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return float64(total) / time.Since(begin).Seconds(), errors.Join(errs...)
}

func takeTurns(addr string, number int, requests [2]string, end string, until time.Time) (n int, err error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if err := c.SetDeadline(until.Add(time.Minute)); err != nil {
		return 0, err
	}
	in := bufio.NewReader(c)
	for ; n%2 == 1 || n == 0 || time.Now().Before(until); n++ {
		request := strings.ReplaceAll(requests[n%2], "%d", fmt.Sprint(number))
		if _, err := c.Write([]byte(request)); err != nil {
			return n, err
		}
		if err := readTo(in, end); err != nil {
			return n, err
		}
	}
	return n, nil
}

// readTo reads up to the end of a reply.
func readTo(in *bufio.Reader, end string) error {
	tail := ""
	for !strings.HasSuffix(tail, end) {
		part, err := in.ReadSlice(end[len(end)-1])
		if err != nil {
			return err
		}
		tail += string(part)
		tail = tail[max(0, len(tail)-len(end)):]
	}
	return nil
}
