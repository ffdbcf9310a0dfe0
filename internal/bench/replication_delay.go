//go:build linux

package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"time"

	"gotycoon/client/wire/frame"
)

// delays measures single updates, one after the other: the clock runs from the master's reply. The
// follower is asked again and again, so a delay contains half of a get on average.
func (b *bench) delays() error {
	m, err := b.startMaster()
	if err != nil {
		return err
	}
	defer m.stop() // a measurement's end
	f, err := b.startFollower(m)
	if err != nil {
		return err
	}
	defer f.stop() // a measurement's end
	if err := errors.Join(storeOne(m, 0), awaitKey(f, 0)); err != nil {
		return err
	}
	toMaster, err := net.Dial("tcp", m.addr())
	if err != nil {
		return err
	}
	defer toMaster.Close()
	toFollower, err := net.Dial("tcp", f.addr())
	if err != nil {
		return err
	}
	defer toFollower.Close()
	set := loader{conn: toMaster, magic: frame.SetBulk}
	get := asker{loader: loader{conn: toFollower, magic: frame.GetBulk}, key: key(0)}
	took := make([]time.Duration, 0, replicaDelays)
	for i := range replicaDelays {
		d, err := oneDelay(&set, &get, fmt.Sprint(i))
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	slices.Sort(took)
	at := func(part float64) string {
		return fmt.Sprintf("%.3f", took[min(int(part*replicaDelays), replicaDelays-1)].Seconds()*1e3)
	}
	b.row(at(0.5), at(0.99), at(0.999), at(1))
	return nil
}

// oneDelay stores a value on the master and waits until the follower has it.
func oneDelay(set *loader, get *asker, value string) (time.Duration, error) {
	set.out = frame.AppendHeader(set.out[:0], frame.Header{Magic: frame.SetBulk, RNum: 1})
	set.out = frame.AppendRecord(set.out, frame.Record{Key: get.key, Value: []byte(value), XT: math.MaxInt64})
	if _, err := set.conn.Write(set.out); err != nil {
		return 0, err
	}
	if err := set.reply(); err != nil {
		return 0, err
	}
	for begin := time.Now(); time.Since(begin) < replicaLimit; {
		if v, err := get.ask(); err != nil || string(v) == value {
			return time.Since(begin), err
		}
	}
	return 0, errors.New("the follower does not get the update")
}

// asker asks for one record again and again.
type asker struct {
	loader
	key []byte
}

// ask returns the value, nil if there is no record.
func (a *asker) ask() ([]byte, error) {
	a.out = frame.AppendHeader(a.out[:0], frame.Header{Magic: frame.GetBulk, RNum: 1})
	a.out = frame.AppendKey(a.out, frame.Key{Key: a.key})
	if _, err := a.conn.Write(a.out); err != nil {
		return nil, err
	}
	a.in = a.in[:0]
	hits := 0
	if _, err := a.need(func() (int, error) {
		n, size, err := frame.DecodeReply(a.in, a.magic)
		hits, a.in = int(n), a.in[min(size, len(a.in)):]
		return 0, err
	}); err != nil || hits == 0 {
		return nil, err
	}
	var value []byte
	_, err := a.need(func() (int, error) {
		r, _, err := frame.DecodeRecord(a.in)
		value = r.Value
		return 0, err
	})
	return value, err
}
