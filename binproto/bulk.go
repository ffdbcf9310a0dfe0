package binproto

import (
	"bytes"
	"encoding/binary"
	"errors"

	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
	"gotycoon/internal/pieces"
)

const (
	runRecords = 256      // records of a run
	runBytes   = 1 << 20  // bytes of a run, unless one record is larger
	largeValue = 1 << 20  // a value of at least this size is stored without a copy in between
	keepReply  = 64 << 10 // a larger reply buffer is dropped after the request
)

// bulk is one set_bulk, remove_bulk or get_bulk request being served.
//
// Records are taken from the connection's buffer as they arrive. Consecutive records of one
// database form a run. A run goes to the database in one call, which has the same result as one
// call for each record in their order.
type bulk struct {
	h    *Handler
	c    *netio.Conn
	head frame.Header
	left uint32 // records not yet taken
	hits uint32
	read int     // bytes of the records taken
	heed db.Heed // nil until a get_bulk has had several runs
	full error   // there is no memory for the reply
	held int     // bytes of the reply that are charged to the connection
	out  []byte  // the reply; it goes to c.Out when the request has succeeded

	// The run.
	dbidx uint16
	db    *db.DB      // nil if there is no such database: its records are skipped
	recs  []db.Record // of set_bulk; slices of the connection's buffer
	keys  [][]byte    // of remove_bulk and get_bulk; slices of the connection's buffer
	visit func(i int, value []byte, xt int64)
}

// takeBulk returns a bulk with empty buffers. put returns it to the pool.
func (h *Handler) takeBulk(c *netio.Conn, head frame.Header) *bulk {
	b, ok := h.bulks.Get().(*bulk)
	if !ok {
		b = &bulk{h: h}
		b.visit = b.addHit
	}
	b.c, b.head, b.left, b.hits, b.read, b.full, b.held, b.heed = c, head, head.RNum, 0, 0, nil, 0, nil
	b.out = frame.AppendReply(b.out[:0], head.Magic, 0)
	return b
}

func (b *bulk) put() {
	b.clearRun()
	b.c, b.db = nil, nil
	if cap(b.out) > keepReply {
		b.out = nil
	}
	b.h.bulks.Put(b)
}

// serveBulk serves one request. If the connection ends within the header, there is no answer. Any
// later failure is answered with Error and ends the connection; records before the failure stay
// stored or removed.
func (h *Handler) serveBulk(c *netio.Conn) (keep bool, detail metrics.Detail) {
	var head frame.Header
	if next(c, frame.DecodeHeader, &head) != nil {
		return false, detail
	}
	b := h.takeBulk(c, head)
	defer b.put()
	if c.Visitor != nil {
		c.Owed.Rights = b
		defer func() { c.Owed.Rights = nil }()
	}
	c.Owed.Replicas = frame.ReplicasOf(head.Flags)
	defer func() { c.Owed.Replicas = 0 }()
	err := h.followers(c)
	if err == nil {
		err = b.serve()
	}
	keep = b.reply(err)
	return keep, b.detail()
}

// errNoFollowers refuses a request that asks for followers where the databases are in an engine.
var errNoFollowers = errors.New("databases in an engine have no followers to wait for")

// followers refuses a request that wants followers to have its updates, where there can be none.
func (h *Handler) followers(c *netio.Conn) error {
	if h.opts.Shared && c.Owed.Replicas > 0 {
		c.Owed.Replicas = 0
		h.opts.Logger.Info(errNoFollowers.Error())
		return errNoFollowers
	}
	return nil
}

// serve takes and executes all records of the request.
func (b *bulk) serve() error {
	for b.left > 0 {
		n, err := b.gather()
		if err != nil {
			return err
		}
		if err := b.permit(); err != nil {
			return err
		}
		b.show()
		if err := b.execute(); err != nil {
			b.h.logFailure(err)
			return err
		}
		b.c.Advance(n)
		b.read += n
		if err := b.heedClient(); err != nil {
			return err
		}
	}
	return nil
}

// heedClient ends a long get_bulk when its client has gone, or its time is over. Updates are not
// ended: what has arrived is stored.
func (b *bulk) heedClient() error {
	if b.left == 0 || b.head.Magic != frame.GetBulk {
		return nil
	}
	if b.heed == nil {
		b.heed = b.c.Heed("") // "": the reply may still begin with an error
	}
	return b.heed()
}

// reply puts the reply into c.Out, if the client wants one. It reports whether the connection can
// be used further.
func (b *bulk) reply(err error) (keep bool) {
	c := b.c
	switch {
	case b.head.Flags&frame.NoReply != 0 && b.head.Magic != frame.GetBulk:
	case err != nil:
		c.Out = append(c.Out, byte(frame.Error))
	default:
		binary.BigEndian.PutUint32(b.out[1:], b.hits)
		if !clearFor(c, b.out) {
			return false
		}
		if len(c.Out) == 0 {
			c.Out, b.out = b.out, c.Out // a large reply need not be copied
		} else {
			c.Out = pieces.Append(c.Out, b.out)
		}
	}
	return err == nil
}

// clearFor sends the earlier replies if a large reply would otherwise be copied behind them: its
// memory is counted once. It reports false if they cannot be sent; then nothing may follow them.
func clearFor(c *netio.Conn, reply []byte) bool {
	return len(reply) <= keepReply || len(c.Out) == 0 || c.Flush() == nil
}

// gather fills the run with at least one record, and returns the length of its records in bytes.
// The records stay in the connection's buffer.
func (b *bulk) gather() (n int, err error) {
	b.clearRun()
	p := b.c.Buffered()
	for b.left > 0 && b.runLength() < runRecords && n < runBytes {
		size, joined, err := b.take(p[n:])
		switch {
		case err == nil && !joined: // the record begins the next run
			return n, nil
		case err == nil:
			n += size
			b.left--
		case n > 0: // the error comes again, after the records before it are done
			return n, nil
		case !errors.Is(err, frame.ErrShort):
			return 0, err
		default:
			if err := b.allowed(p); err != nil {
				return 0, err
			}
			if err := b.c.Need(size); err != nil {
				return 0, err
			}
			p = b.c.Buffered()
		}
	}
	return n, nil
}

// allowed refuses a record whose beginning has arrived, if its key is longer than its database
// allows: the rest of the record need not be read.
func (b *bulk) allowed(p []byte) error {
	dbidx, ksiz, ok := frame.DecodeKeySize(p)
	if !ok {
		return nil
	}
	if d := b.h.opts.Catalog.DB(int(dbidx)); d != nil && ksiz > d.Info().MaxKey {
		return errLongKey
	}
	return nil
}

// errLongKey: a key is longer than its database allows.
var errLongKey = errors.New("the key is longer than its database allows")

func (b *bulk) runLength() int { return len(b.recs) + len(b.keys) }

func (b *bulk) clearRun() {
	clear(b.recs)
	clear(b.keys)
	b.recs, b.keys = b.recs[:0], b.keys[:0]
}

// take adds the record at the beginning of p to the run, unless the record is for another database.
// n is its length.
func (b *bulk) take(p []byte) (n int, joined bool, err error) {
	if b.head.Magic != frame.SetBulk {
		k, n, err := frame.DecodeKey(p)
		if err != nil || !b.join(k.DBIdx) {
			return n, false, err
		}
		b.keys = append(b.keys, k.Key)
		return n, true, nil
	}
	r, n, err := frame.DecodeRecord(p)
	if err != nil || !b.join(r.DBIdx) {
		return n, false, err
	}
	rec := db.Record{Key: r.Key, Value: r.Value, XT: record.XT(r.XT)}
	if len(r.Value) >= largeValue {
		// The store uses Room, the bytes in front of the value, which the end of the key is part
		// of.
		rec.Key = bytes.Clone(r.Key)
		rec.Room = p[n-len(r.Value)-record.Headroom : n]
	}
	b.recs = append(b.recs, rec)
	return n, true, nil
}

// join reports whether a record for this database belongs to the run. The first record of a run
// always does.
func (b *bulk) join(dbidx uint16) bool {
	if b.runLength() > 0 {
		return dbidx == b.dbidx
	}
	b.dbidx, b.db = dbidx, b.h.opts.Catalog.DB(int(dbidx))
	return true
}
