// Package metrics measures requests while they are served, and says what a metric is
// (definition.go).
//
// The cost of measuring cannot be seen in the throughput: two readings of the clock for each batch
// of requests that arrive together, and a few additions to counters that busy connections seldom
// share. Nothing is allocated and nothing is locked. The counters are added up only when somebody
// asks for the figures, for example in a scrape.
//
// A Recorder belongs to one connection. The time of a request begins when its bytes have arrived.
// It ends when the reply may leave: after the wait for the update log, and before the wait for a
// client that is slow to read. The wait for the rest of an incomplete request does not count.
// Pipelined requests all get the time of their batch, because their client waits for the batch.
//
//	arrived        rest of a request     executed   logged   reply read by client
//	|-- counts --|  does not count  |----- counts --------|   does not count   |
//
// A nil Recorder measures nothing and does not read the clock. Nor does the Recorder of a meter
// that is still, but it shows its requests to those who watch (watch.go).
package metrics

import (
	"iter"
	"time"
)

// Recorder measures the requests of one connection. It belongs to the connection's goroutine. The
// methods of a nil Recorder do nothing.
type Recorder struct {
	meter *Meter
	shard uint32
	still bool  // it measures nothing: Options.Still
	began int64 // when the batch of requests arrived; 0: nothing has arrived
	left  int64 // when the wait for the rest of a request began; 0: no such wait
	peer  string

	notes int // elements of noted in use
	noted [4]note

	details *details // nil unless operations are logged
}

// note counts the requests of one kind in the batch.
type note struct {
	protocol  *Protocol
	command   int
	n, failed uint64
}

// NewRecorder returns a recorder for a connection. peer is the client's address for the log. The
// recorder of a nil Meter is nil.
func (m *Meter) NewRecorder(peer string) *Recorder {
	if m == nil {
		return nil
	}
	r := &Recorder{meter: m, shard: m.numbers.Add(1) % shards, still: m.opts.Still, peer: peer}
	if m.opts.Slow > 0 || m.opts.Sample > 0 {
		r.details = new(details)
	}
	return r
}

// Idle is called when the connection waits for its next request.
func (r *Recorder) Idle() {
	if r != nil {
		r.began, r.left = 0, 0
	}
}

// Leave is called when the connection waits for the rest of a request.
func (r *Recorder) Leave() {
	if r != nil && r.began != 0 {
		r.left = r.meter.now()
	}
}

// Arrived is called when bytes have arrived.
func (r *Recorder) Arrived() {
	if r != nil && !r.still && (r.began == 0 || r.left != 0) {
		r.arrived()
	}
}

func (r *Recorder) arrived() {
	now := r.meter.now()
	away := now - r.left
	if r.began == 0 {
		r.began, away = now, 0
	} else {
		r.began += away
	}
	r.left = 0
	if d := r.details; d != nil {
		if d.mark += away; away == 0 {
			d.mark = now
		}
	}
}

// Restart is called when a request has waited because it asked to. Its time begins again now.
func (r *Recorder) Restart() {
	if r != nil && !r.still {
		r.began = 0
		r.arrived()
	}
}

// Note counts a request that has been answered. Done gives it a time, together with its batch.
func (r *Recorder) Note(p *Protocol, command int, failed bool) {
	if r == nil || p == nil || r.still {
		return
	}
	fails := uint64(0)
	if failed {
		fails = 1
	}
	for i := range r.notes {
		if n := &r.noted[i]; n.protocol == p && n.command == command {
			n.n++
			n.failed += fails
			return
		}
	}
	if r.notes == len(r.noted) {
		r.Done()
	}
	r.noted[r.notes] = note{p, command, 1, fails}
	r.notes++
}

// Long counts a request that keeps its connection for as long as the client likes. It gets no time.
func (r *Recorder) Long(p *Protocol, command int) {
	if r != nil && p != nil && !r.still {
		p.cells[r.shard][command].long.Add(1)
	}
}

// Done is called when the replies to all noted requests may leave. The time of further requests in
// the same batch begins now.
func (r *Recorder) Done() {
	if r == nil || r.notes == 0 {
		return
	}
	now := r.meter.now()
	took := now - r.began
	if r.began == 0 { // Arrived was not called
		took = 0
	}
	bucket, batch := bucketOf(took), uint64(0)
	for i := range r.notes {
		n := &r.noted[i]
		batch += n.n
		c := &n.protocol.cells[r.shard][n.command]
		c.buckets[bucket].Add(n.n)
		c.nanos.Add(uint64(took) * n.n)
		if n.failed > 0 {
			c.failed.Add(n.failed)
		}
	}
	r.notes, r.began = 0, now
	if r.details != nil {
		r.finish(now, batch)
	}
}

// details describe the slowest request of a batch.
type details struct {
	mark    int64 // when the previous request was answered
	known   bool  // there is a request
	service int64 // time of the request without the wait for the log
	op      Operation
	length  int // length of its key
	key     [maxKey]byte
}

// Detail describes a request for the log. Describe copies Key if it keeps it.
type Detail struct {
	Protocol *Protocol
	Command  int
	Database string
	Key      []byte
	Bulk     bool // there may be further keys, which Keys has shown
	In, Out  int
	Failed   bool
}

// Wanted reports whether anybody wants to know of requests. Otherwise Note and Describe do nothing.
func (r *Recorder) Wanted() bool {
	return r != nil && (!r.still || r.meter.watches.Load() != nil)
}

// Detailed reports whether Describe is to be called for each request.
func (r *Recorder) Detailed() bool {
	return r != nil && (r.details != nil || r.meter.watches.Load() != nil)
}

// Describe describes a request. It is called after Note.
func (r *Recorder) Describe(d Detail) {
	if r == nil || d.Protocol == nil {
		return
	}
	if watches := r.meter.watches.Load(); watches != nil {
		r.show(*watches, d)
	}
	if r.details == nil {
		return
	}
	now := r.meter.now()
	service := now - r.details.mark
	r.details.mark = now
	if r.meter.sampled() {
		op := d.operation(r.peer)
		op.Key, op.Duration, op.Time, op.Batch = quote(d.Key[:min(len(d.Key), maxKey)], len(d.Key)), time.Duration(service), time.Now(), 1
		r.meter.opts.Logger.Info("request: " + op.String())
	}
	if at := r.details; r.meter.opts.Slow > 0 && (!at.known || service > at.service) {
		at.known, at.service, at.op, at.length = true, service, d.operation(r.peer), len(d.Key)
		copy(at.key[:], d.Key)
	}
}

// show shows a request to those who watch. It is apart from Describe, because d goes to the heap
// here.
func (r *Recorder) show(watches []watch, d Detail) {
	for _, w := range watches {
		w.see(&d, r.peer)
	}
}

// Keys shows the keys of a bulk, or of a part of it, to those who count keys.
func (r *Recorder) Keys(d Detail, keys iter.Seq[[]byte]) {
	if r == nil || d.Protocol == nil {
		return
	}
	if watches := r.meter.watches.Load(); watches != nil {
		for _, w := range *watches {
			w.count(&d, r.peer, keys)
		}
	}
}

func (d *Detail) operation(peer string) Operation {
	return Operation{
		Protocol: d.Protocol.name, Command: d.Protocol.commands[d.Command], Database: d.Database,
		In: d.In, Out: d.Out, Failed: d.Failed, Peer: peer,
	}
}

// finish logs the slowest request of the batch if it was slow, including the wait for the log.
func (r *Recorder) finish(now int64, batch uint64) {
	d := r.details
	wait := now - d.mark
	d.mark = now
	if !d.known {
		return
	}
	d.known = false
	took := time.Duration(d.service + wait)
	if took < r.meter.opts.Slow {
		return
	}
	d.op.Time, d.op.Duration, d.op.Wait, d.op.Batch = time.Now(), took, time.Duration(wait), int(batch)
	d.op.Key = quote(d.key[:min(d.length, maxKey)], d.length)
	r.meter.remember(&d.op)
}
