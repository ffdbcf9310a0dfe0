//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"

	"gotycoon/client/wire/frame"
)

// bulkRounds is how often each server has its turn in a row of bulkPairs.
const bulkRounds = 3

// bulkRival is a server with one database.
type bulkRival struct {
	name, bin string
	args      []string
	process   *process
}

// bulkWork is what is asked of the servers.
type bulkWork struct {
	name     string
	protocol protocol
}

// bulkPairs measures bulks beside a Kyoto Tycoon, the servers of a group in turns: records per
// second, and the server's processor time for a record, what a checkpoint takes afterwards
// included.
func (b *bench) bulkPairs() error {
	if b.original == "" {
		return errors.New("-original must name the ktserver of a Kyoto Tycoon")
	}
	b.table(fmt.Sprintf("Bulks of %d records beside the original, a million keys of 16 bytes, values of %d, %d connections, medians of %d runs of %s in turns",
		bulkSize, valueSize, bulkConns, bulkRounds, b.length), "database", "operation", "records/s", "server CPU, µs/record", "rate", "CPU")
	for _, group := range b.bulkGroups() {
		if err := b.compareBulks(group); err != nil {
			return err
		}
	}
	return nil
}

// bulkGroups are the servers that are compared: the first of a group is ours.
func (b *bench) bulkGroups() [][]*bulkRival {
	log := []string{"-ulog", "$DIR/ulog", "-sid", "1"}
	rival := func(bin, name string, args ...string) *bulkRival {
		if name = "gotycoon `" + name + "`"; bin == b.original {
			name = strings.Replace(name, "gotycoon", "original", 1)
		}
		return &bulkRival{name: name, bin: bin, args: append([]string{"-port", "$PORT", "-le"}, args...)}
	}
	file := func(bin, suffix string) *bulkRival {
		return rival(bin, suffix+"` with `-ulog", append(log[:len(log):len(log)], "$DIR/a"+suffix)...)
	}
	groups := [][]*bulkRival{{file(b.server, ".kct"), file(b.original, ".kch"), file(b.original, ".kct"),
		rival(b.original, ".kch", "$DIR/a.kch"), rival(b.original, ".kct", "$DIR/a.kct")}}
	for _, name := range []string{"%", "*", ":"} {
		groups = append(groups, []*bulkRival{rival(b.server, name, name), rival(b.original, name, name)})
	}
	return groups
}

func (b *bench) compareBulks(group []*bulkRival) error {
	for _, r := range group {
		p, err := start(r.bin, r.args...)
		if err != nil {
			return err
		}
		defer p.stop() // a measurement's end
		r.process = p
		if err := fill(p); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	for _, work := range []bulkWork{
		{"binary set", binaryBulkSet()}, {"binary get", binaryBulkGet()}, {"`/rpc/set_bulk`", httpBulkSet()}, {"`/rpc/get_bulk`", httpBulkGet()},
	} {
		if err := b.compareBulk(group, work); err != nil {
			return err
		}
	}
	return nil
}

// compareBulk prints the rows of a group for one kind of request. The first rival is compared with
// each of the others.
func (b *bench) compareBulk(group []*bulkRival, work bulkWork) error {
	rates, costs := make([][]float64, len(group)), make([][]float64, len(group))
	for round := range bulkRounds {
		for turn := range group {
			i := (round + turn) % len(group)
			p := group[i].process
			if err := p.idle(); err != nil {
				return err
			}
			before, err := p.cpu()
			if err != nil {
				return err
			}
			v := &volley{addr: p.addr(), protocol: work.protocol, conns: bulkConns, length: b.length}
			r, err := v.run()
			if err != nil {
				return fmt.Errorf("%s, %s: %w", group[i].name, work.name, err)
			}
			if err := p.idle(); err != nil {
				return err
			}
			after, err := p.cpu()
			if err != nil {
				return err
			}
			rates[i] = append(rates[i], r.perSecond()*bulkSize)
			costs[i] = append(costs[i], (after-before).Seconds()*1e6/float64(r.count*bulkSize))
		}
	}
	for i, r := range group {
		rate, cost := median(rates[i]), median(costs[i])
		b.row(r.name, work.name, rate, fmt.Sprintf("%.2f", cost), ratio(median(rates[0])/rate), ratio(median(costs[0])/cost))
	}
	return nil
}

// bulkNumbers calls add for the keys of a request, any of a million that fill has stored.
func bulkNumbers(s shot, add func(key []byte)) {
	var room [ladderKeySize]byte
	for i := range uint64(bulkSize) {
		n := mix(s.random+i) % bulkKeys * 0x9E3779B97F4A7C15
		const digits = "0123456789abcdef"
		for at := range room {
			room[at] = digits[n>>(60-4*at)&15]
		}
		add(room[:])
	}
}

func binaryBulkSet() protocol {
	value := bytes.Repeat([]byte{'x'}, valueSize)
	return protocol{request: func(out []byte, s shot) []byte {
		out = frame.AppendHeader(out, frame.Header{Magic: frame.SetBulk, RNum: bulkSize})
		bulkNumbers(s, func(key []byte) {
			out = frame.AppendRecord(out, frame.Record{Key: key, Value: value, XT: math.MaxInt64})
		})
		return out
	}, reply: func(in []byte) (int, error) { return bulkReply(in, frame.SetBulk) }}
}

func binaryBulkGet() protocol {
	return protocol{request: func(out []byte, s shot) []byte {
		out = frame.AppendHeader(out, frame.Header{Magic: frame.GetBulk, RNum: bulkSize})
		bulkNumbers(s, func(key []byte) { out = frame.AppendKey(out, frame.Key{Key: key}) })
		return out
	}, reply: func(in []byte) (int, error) {
		size, err := bulkReply(in, frame.GetBulk)
		if size == 0 || err != nil {
			return 0, err
		}
		return whole(in, size+bulkSize*(frame.RecordHead+ladderKeySize+valueSize))
	}}
}

// bulkReply wants all records stored, or found.
func bulkReply(in []byte, m frame.Magic) (int, error) {
	n, size, err := frame.DecodeReply(in, m)
	switch {
	case errors.Is(err, frame.ErrShort):
		return 0, nil
	case err == nil && n != bulkSize:
		err = fmt.Errorf("%d of %d records", n, bulkSize)
	}
	return size, err
}

func httpBulkSet() protocol {
	value := strings.Repeat("x", valueSize)
	const row = 1 + ladderKeySize + 1 + valueSize + 1
	return protocol{reply: httpReply, request: func(out []byte, s shot) []byte {
		out = fmt.Appendf(out, "POST /rpc/set_bulk HTTP/1.1\r\nContent-Type: text/tab-separated-values\r\nContent-Length: %d\r\n\r\n", bulkSize*row)
		bulkNumbers(s, func(key []byte) {
			out = append(append(append(append(append(out, '_'), key...), '\t'), value...), '\n')
		})
		return out
	}}
}

func httpBulkGet() protocol {
	const row = 1 + ladderKeySize + 1 + 1
	return protocol{request: func(out []byte, s shot) []byte {
		out = fmt.Appendf(out, "POST /rpc/get_bulk HTTP/1.1\r\nContent-Type: text/tab-separated-values\r\nContent-Length: %d\r\n\r\n", bulkSize*row)
		bulkNumbers(s, func(key []byte) { out = append(append(append(out, '_'), key...), "\t\n"...) })
		return out
	}, reply: func(in []byte) (int, error) {
		size, err := httpReply(in)
		// A key that is twice in a request is once in the reply.
		if err == nil && size > 0 && size < bulkSize*valueSize*9/10 {
			err = fmt.Errorf("a reply of %d bytes has not the records of %d keys", size, bulkSize)
		}
		return size, err
	}}
}
