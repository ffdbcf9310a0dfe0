//go:build linux

package main

import (
	"fmt"
	"math"

	"gotycoon/client/wire/frame"
)

const (
	syncConns  = 64
	syncRounds = 5
)

// sync measures what -sync-replicas costs: two masters with two followers each, of which one
// answers an update when a follower has it. They are loaded in turns, so that other work on the
// machine falls on both.
func (b *bench) sync() error {
	type cluster struct {
		name   string
		args   []string
		master *process
	}
	clusters := [2]cluster{{name: "0"}, {name: "1", args: []string{"-sync-replicas", "1"}}}
	for i := range clusters {
		c := &clusters[i]
		var err error
		if c.master, err = b.startMaster(c.args...); err != nil {
			return err
		}
		defer c.master.stop() // a measurement's end
		for _, sid := range []string{"2", "3"} {
			f, err := b.startFollowerAs(sid, c.master)
			if err != nil {
				return err
			}
			defer f.stop() // a measurement's end
			if err := storeOne(c.master, 0); err != nil {
				return err
			}
			if err := awaitKey(f, 0); err != nil {
				return err
			}
		}
		if err := fillSmall(c.master.addr(), httpSet(smallKeys)); err != nil {
			return err
		}
	}
	b.table(fmt.Sprintf("Updates that wait for 1 of 2 followers, `.kct` with `-ulog` everywhere, %d connections, %d runs of %s in turns",
		syncConns, syncRounds, b.length), "operation", "-sync-replicas", "requests/s", "of 0", "p50, ms", "p99, ms")
	for _, op := range []struct {
		name     string
		protocol protocol
	}{{"REST set", httpSet(smallKeys)}, {"binary bulk of 100", setBulks()}} {
		var results [2]volleyResult
		for round := range syncRounds {
			for turn := range clusters {
				i := (round + turn) % 2
				v := &volley{addr: clusters[i].master.addr(), protocol: op.protocol, conns: syncConns, length: b.length}
				if err := results[i].addRun(clusters[i].master, v); err != nil {
					return fmt.Errorf("%s, -sync-replicas %s: %w", op.name, clusters[i].name, err)
				}
			}
		}
		for i := range results {
			r := &results[i]
			b.row(op.name, clusters[i].name, r.perSecond(), ratio(r.perSecond()/results[0].perSecond()), millis(r.waits.Quantile(0.5)), millis(r.waits.Quantile(0.99)))
		}
	}
	return nil
}

// setBulks stores bulks of 100 records, which are made before the time is taken.
func setBulks() protocol {
	bulks := make([][]byte, keySpace/bulkSize)
	for n := range bulks {
		bulk := frame.AppendHeader(nil, frame.Header{Magic: frame.SetBulk, RNum: bulkSize})
		for i := range bulkSize {
			bulk = frame.AppendRecord(bulk, frame.Record{Key: key(uint64(n*bulkSize + i)), Value: value(), XT: math.MaxInt64})
		}
		bulks[n] = bulk
	}
	return protocol{request: func(out []byte, s shot) []byte {
		return append(out, bulks[s.random%uint64(len(bulks))]...)
	}, reply: func(in []byte) (int, error) {
		if len(in) < frame.ReplyLen {
			return 0, wrongStart(in[:min(len(in), 1)], string([]byte{byte(frame.SetBulk)})[:min(len(in), 1)])
		}
		if _, _, err := frame.DecodeReply(in, frame.SetBulk); err != nil {
			return 0, err
		}
		return whole(in, frame.ReplyLen)
	}}
}
