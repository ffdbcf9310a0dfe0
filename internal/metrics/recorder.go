// Package metrics measures requests while they are served, at a cost that cannot be seen in the throughput: two looks at the
// clock for each batch of requests that arrive together, and a few additions to counters that no two busy connections share.
// Nothing is allocated and nothing is locked. Whoever wants the figures (a scrape) adds the counters up.
//
// A Recorder belongs to one connection. Its time begins when bytes have arrived and ends when the replies may leave, which is
// after the wait for the update log and before the wait for a client that is slow to read. Waiting for the rest of a request
// is not counted. Requests that were pipelined all have the time of their batch: that is what their client waits for.
//
// A nil Recorder measures nothing and does not look at the clock.
package metrics

import "time"

// Recorder measures the requests of one connection, and belongs to its goroutine. All methods of a nil Recorder do nothing.
type Recorder struct {
	meter *Meter
	shard uint32
	began int64 // when the batch of requests arrived; 0: nothing has arrived
	left  int64 // when the connection began to wait for the rest of a request; 0: it does not
	peer  string

	notes int // in use
	noted [4]note

	details *details // nil unless operations are logged
}

// note is requests of one kind in the batch.
type note struct {
	protocol  *Protocol
	command   int
	n, failed uint64
}

// NewRecorder returns a recorder for a connection, nil of a nil Meter. peer is the client's address as the log shows it.
func (m *Meter) NewRecorder(peer string) *Recorder {
	if m == nil {
		return nil
	}
	r := &Recorder{meter: m, shard: m.numbers.Add(1) % shards, peer: peer}
	if m.opts.Slow > 0 || m.opts.Sample > 0 {
		r.details = new(details)
	}
	return r
}

// Idle says that the connection waits for its next request.
func (r *Recorder) Idle() {
	if r != nil {
		r.began, r.left = 0, 0
	}
}

// Leave says that the connection waits for the rest of a request.
func (r *Recorder) Leave() {
	if r != nil && r.began != 0 {
		r.left = r.meter.now()
	}
}

// Arrived says that bytes have come.
func (r *Recorder) Arrived() {
	if r != nil && (r.began == 0 || r.left != 0) {
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

// Restart says that the request has waited for something that it asked to wait for: its time begins now.
func (r *Recorder) Restart() {
	if r != nil {
		r.began = 0
		r.arrived()
	}
}

// Note counts a request that has been answered; its time is known when the batch is done.
func (r *Recorder) Note(p *Protocol, command int, failed bool) {
	if r == nil || p == nil {
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

// Long counts a request that keeps its connection for as long as the client likes.
func (r *Recorder) Long(p *Protocol, command int) {
	if r != nil && p != nil {
		p.cells[r.shard][command].long.Add(1)
	}
}

// Done says that the replies to everything noted may leave. What comes in the same batch is measured from now on.
func (r *Recorder) Done() {
	if r == nil || r.notes == 0 {
		return
	}
	now := r.meter.now()
	took := now - r.began
	if r.began == 0 { // nobody has said when
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

// details is what is known of the slowest request of a batch.
type details struct {
	mark    int64 // when the request before was answered
	known   bool  // there is one
	service int64 // its time without the wait for the log
	op      Operation
	length  int // of its key
	key     [maxKey]byte
}

// Detail is a request for the log. Key is copied where it is wanted.
type Detail struct {
	Protocol *Protocol
	Command  int
	Database string
	Key      []byte
	In, Out  int
	Failed   bool
}

// Detailed tells whether Describe wants to be called after each request.
func (r *Recorder) Detailed() bool { return r != nil && r.details != nil }

// Describe says what a request was, after Note.
func (r *Recorder) Describe(d Detail) {
	if !r.Detailed() || d.Protocol == nil {
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

func (d *Detail) operation(peer string) Operation {
	return Operation{
		Protocol: d.Protocol.name, Command: d.Protocol.commands[d.Command], Database: d.Database,
		In: d.In, Out: d.Out, Failed: d.Failed, Peer: peer,
	}
}

// finish logs the slowest request of the batch when it is slow, the wait for the log included.
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
