//go:build linux

package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"gotycoon/client/wire/frame"
)

const (
	replicaRecords = 1_000_000
	replicaRounds  = 3
	replicaLimit   = 2 * time.Minute // for one measurement
)

// replication measures a master and a follower, both with a file and an update log, beside the
// client on the same machine: records per second from the client's first bulk, or from the start of
// the follower, until the follower has the last record.
func (b *bench) replication() error {
	bulks := replicaBulks()
	b.table("A million records to a follower, bulks of 100, 16-byte keys, 100-byte values, `.kct` with `-ulog` on both sides",
		"the follower", "records/s", "processor time of the master, µs/record", "of the follower")
	for range replicaRounds {
		if err := b.followLive(bulks); err != nil {
			return fmt.Errorf("live: %w", err)
		}
		if err := b.catchUp(bulks); err != nil {
			return fmt.Errorf("catch up: %w", err)
		}
	}
	return nil
}

// replicaBulks returns the requests that store the records, made before the time is taken.
func replicaBulks() (bulks [][]byte) {
	for first := uint64(0); first < replicaRecords; first += bulkSize {
		bulk := frame.AppendHeader(nil, frame.Header{Magic: frame.SetBulk, RNum: bulkSize})
		for i := range uint64(bulkSize) {
			bulk = frame.AppendRecord(bulk, frame.Record{Key: key(first + i), Value: value(), XT: math.MaxInt64})
		}
		bulks = append(bulks, bulk)
	}
	return bulks
}

// startMaster starts a server that can be followed.
func (b *bench) startMaster(more ...string) (*process, error) {
	args := append([]string{"-port", "$PORT", "-le", "-ulog", "$DIR/ulog", "-sid", "1"}, more...)
	return start(b.server, append(args, "$DIR/a.kct")...)
}

// startFollower starts a server that follows another one.
func (b *bench) startFollower(master *process) (*process, error) {
	return b.startFollowerAs("2", master)
}

// startFollowerAs is startFollower with a server ID.
func (b *bench) startFollowerAs(sid string, master *process) (*process, error) {
	return start(b.server, "-port", "$PORT", "-le", "-ulog", "$DIR/ulog", "-sid", sid, "-rts", "$DIR/rts",
		"-mhost", "127.0.0.1", "-mport", master.port, "$DIR/a.kct")
}

// followLive measures a follower that is connected while the client writes.
func (b *bench) followLive(bulks [][]byte) error {
	m, err := b.startMaster()
	if err != nil {
		return err
	}
	defer m.stop() // a measurement's end
	f, err := b.startFollower(m)
	if err != nil {
		return err
	}
	defer f.stop()               // a measurement's end
	const first = replicaRecords // a key that no bulk has
	if err := storeOne(m, first); err != nil {
		return err
	}
	if err := awaitKey(f, first); err != nil {
		return err
	}
	return b.replicated("is connected while the client writes", m, f, func() error {
		if err := send(m, bulks); err != nil {
			return err
		}
		return awaitKey(f, replicaRecords-1)
	})
}

// catchUp measures a follower that connects when everything is in the master's log.
func (b *bench) catchUp(bulks [][]byte) error {
	m, err := b.startMaster()
	if err != nil {
		return err
	}
	defer m.stop() // a measurement's end
	if err := send(m, bulks); err != nil {
		return err
	}
	f, err := b.startFollower(m)
	if err != nil {
		return err
	}
	defer f.stop() // a measurement's end
	return b.replicated("connects afterwards", m, f, func() error { return awaitKey(f, replicaRecords-1) })
}

// replicated takes the time of a replication, and the processor time of both servers.
func (b *bench) replicated(name string, m, f *process, run func() error) error {
	masterBefore, err1 := m.cpu()
	followerBefore, err2 := f.cpu()
	begin := time.Now()
	if err := errors.Join(err1, err2, run()); err != nil {
		return err
	}
	wall := time.Since(begin)
	masterAfter, err1 := m.cpu()
	followerAfter, err2 := f.cpu()
	each := func(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()*1e6/replicaRecords) }
	b.row(name, replicaRecords/wall.Seconds(), each(masterAfter-masterBefore), each(followerAfter-followerBefore))
	return errors.Join(err1, err2)
}

// send sends bulks over one connection, each after the reply to the one before.
func send(p *process, bulks [][]byte) error {
	c, err := net.Dial("tcp", p.addr())
	if err != nil {
		return err
	}
	defer c.Close()
	l := loader{conn: c, magic: frame.SetBulk}
	for _, bulk := range bulks {
		if _, err := c.Write(bulk); err != nil {
			return err
		}
		if err := l.reply(); err != nil {
			return err
		}
	}
	return nil
}

// storeOne stores one record.
func storeOne(p *process, n uint64) error {
	bulk := frame.AppendHeader(nil, frame.Header{Magic: frame.SetBulk, RNum: 1})
	return send(p, [][]byte{frame.AppendRecord(bulk, frame.Record{Key: key(n), Value: value(), XT: math.MaxInt64})})
}

// awaitKey waits until a server has a record.
func awaitKey(p *process, n uint64) error {
	ask, err := askFor(p, n)
	if err != nil {
		return err
	}
	defer ask.close()
	for deadline := time.Now().Add(replicaLimit); time.Now().Before(deadline); <-time.After(time.Millisecond) {
		if v, err := ask.get(); err != nil || v != "" {
			return err
		}
	}
	return errors.New("the follower does not get the last record")
}
