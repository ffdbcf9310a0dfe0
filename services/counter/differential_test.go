package counter_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/counter/frame"
	"gotycoon/services/counter"
)

// pair is one connection to each of the two servers.
type pair struct{ ours, theirs *peer }

// duel holds random conversations with the original and with this server at the same time.
type duel struct {
	*rand.Rand
	t            *testing.T
	ours, theirs string
	pairs        []pair
	watch        pair // looks at the whole
}

// The original and this server give the same answers to the same random conversations, valid and
// invalid requests in any order, on several connections, some of which end. The statistics are left
// out but for the names: most are of the latest collection.
func TestTheOriginalGivesTheSameAnswers(t *testing.T) {
	const interval = 10_000_000 // seconds: it does not end during the test
	theirs, _ := startYrmcds(t, fmt.Sprintf("counter.stat_interval = %d", interval), "counter.buckets = 10000")
	_, ours := start(t, counter.Options{StatsInterval: interval * time.Second})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	d := &duel{Rand: rand.New(rand.NewPCG(seed, 0)), t: t, ours: ours, theirs: theirs}
	d.watch = d.dial()
	for range 4 {
		d.pairs = append(d.pairs, d.dial())
	}
	d.await(len(d.pairs) + 1)
	for range 2000 {
		i := d.IntN(len(d.pairs))
		if d.IntN(100) == 0 {
			d.replace(i)
			continue
		}
		d.talk(d.pairs[i])
	}
	require.NotEmpty(t, d.watch.theirs.dump())
}

func (d *duel) dial() pair { return pair{dial(d.t, d.ours), dial(d.t, d.theirs)} }

// replace ends a connection and waits until both servers have released what it held.
func (d *duel) replace(i int) {
	require.NoError(d.t, d.pairs[i].ours.Close())
	require.NoError(d.t, d.pairs[i].theirs.Close())
	d.await(len(d.pairs)) // without this one, with the one that watches
	require.Eventually(d.t, func() bool {
		ours, theirs := d.watch.ours.dump(), d.watch.theirs.dump()
		return fmt.Sprint(ours) == fmt.Sprint(theirs)
	}, limit, time.Millisecond)
	d.pairs[i] = d.dial()
	d.await(len(d.pairs) + 1) // or the end of the next one could be taken for that of this one, which nobody has noticed yet
}

// await waits until both servers know of so many connections.
func (d *duel) await(connections int) {
	for _, p := range []*peer{d.watch.ours, d.watch.theirs} {
		require.Eventually(d.t, func() bool { return p.stats()["curr_connections"] == fmt.Sprint(connections) }, limit, time.Millisecond)
	}
}

// talk sends some requests in one piece and compares the replies.
func (d *duel) talk(p pair) {
	var sent []byte
	n := 1 + d.IntN(8)
	for i := range n {
		sent = append(sent, d.request(uint32(i))...)
	}
	sent = frame.AppendRequest(sent, frame.Noop, uint32(n), frame.Args{}) // nothing may come in between
	var have [2][]reply
	for i, peer := range []*peer{p.ours, p.theirs} {
		_, err := peer.Write(sent)
		require.NoError(d.t, err)
		have[i] = peer.receiveUntil(uint32(n))
	}
	require.Equal(d.t, have[1], have[0], "requests %x", sent)
}

// receiveUntil returns all replies up to that with the opaque, those to one Dump in the order of
// names.
func (p *peer) receiveUntil(last uint32) (all []reply) {
	p.tb.Helper()
	dumped := 0
	for {
		r := p.receive()
		if r.Op == frame.Stats && r.Status == frame.OK {
			r.body, r.Size = "", 0
		}
		all = append(all, r)
		switch {
		case r.Op == frame.Dump && r.Size > 0 && r.Status == frame.OK:
			dumped++
		case dumped > 0:
			slices.SortFunc(all[len(all)-1-dumped:len(all)-1], func(a, b reply) int { return compareText(a.body[8:], b.body[8:]) })
			dumped = 0
		}
		if r.Opaque == last {
			return all
		}
	}
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// request makes a request, most often a valid one.
func (d *duel) request(opaque uint32) []byte {
	ops := []frame.Opcode{frame.Get, frame.Acquire, frame.Acquire, frame.Acquire, frame.Release, frame.Release}
	rare := []frame.Opcode{frame.Noop, frame.Stats, frame.Dump, 4, 0x0f, 0x12, 0xff}
	op := ops[d.IntN(len(ops))]
	if d.IntN(10) == 0 {
		op = rare[d.IntN(len(rare))]
	}
	name := fmt.Sprintf("counter-%d", d.IntN(10))
	if d.IntN(20) == 0 {
		name = string([]byte{0, byte(d.IntN(3))})[:d.IntN(3)]
	}
	a := frame.Args{Resources: uint32(d.IntN(6)), Maximum: uint32(d.IntN(20)), Name: []byte(name)}
	if d.IntN(20) == 0 {
		a.Maximum = 1<<32 - 1
	}
	request := frame.AppendRequest(nil, op, opaque, a)
	if d.IntN(10) > 0 {
		return request
	}
	return d.spoil(request)
}

// spoil changes a request, but not its opaque, and leaves it one request.
func (d *duel) spoil(request []byte) []byte {
	body := request[frame.HeaderLen:]
	switch d.IntN(5) {
	case 0:
		request[0] = byte(d.IntN(256))
	case 1:
		request[2], request[3] = byte(d.IntN(256)), byte(d.IntN(256))
	case 2:
		body = append(body, "and more"[:1+d.IntN(8)]...)
	case 3:
		body = body[:d.IntN(len(body)+1)]
	case 4:
		if len(body) > 0 {
			body[d.IntN(min(len(body), 10))] ^= 1 << d.IntN(3)
		}
	}
	binary.BigEndian.PutUint32(request[4:], uint32(len(body)))
	return append(request[:frame.HeaderLen:frame.HeaderLen], body...)
}
