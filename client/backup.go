package client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"time"

	"gotycoon/client/wire/frame"
)

// copyBuffer is large enough for the usual block of a copy.
const copyBuffer = 256 << 10

// ErrNoCopy means that the server does not know the copy request.
var ErrNoCopy = errors.New("the server does not know the copy request: it needs gotycoon")

// CopyInfo describes a copy. It is known when the copy begins.
type CopyInfo struct {
	TS         uint64   // the copy has exactly the updates of the server's update log up to TS
	LogID      [16]byte // identity of that log; zeros: there is no log, and TS is a time
	DB         uint16   // index of the database
	Count      int64    // records
	Size       int64    // of the database on the server, in bytes
	Persistent bool     // values have no expiration time in front of them
	Ascending  bool     // records are sorted by the bytes of their keys
	Decimal    bool     // the database compares keys as numbers

	Versioned bool   // the copy has versions, because CopyOptions.Version is set
	ClearedAt uint64 // version of the last clear: its time stamp; 0: there was none
	ClearedBy uint16 // and the ID of the server that made it
	Floor     uint64 // removals up to this time stamp may have been forgotten; 0: none

	Newest   uint64 // newest update in the log at that moment; 0: unknown, see CopyOptions.Newest
	NewestBy uint16 // ID of the server that made it
}

// CopyVersion is the version of a key: which update was its last.
type CopyVersion struct {
	Stamp   uint64 // time stamp of the update
	SID     uint16 // ID of the server that made it
	Removed bool   // the update was a removal; there is no record
}

// CopyOptions are the options of a Copy.
type CopyOptions struct {
	Limit int64                // bytes to receive per second; 0 means no limit
	From  []byte               // only records behind this key; requires CopyInfo.Ascending
	Begin func(CopyInfo) error // called first
	// Visit is called for each record; the slices are valid during the call.
	Visit func(key, value []byte) error

	// Version, if not nil, is called instead of Visit when the copy has versions
	// (CopyInfo.Versioned): for all records, and for the removals that the database remembers.
	Version func(key, value []byte, v CopyVersion) error

	// Newest asks for CopyInfo.Newest, which older servers refuse.
	Newest bool

	flags uint32
	index uint16 // of the database, if the request has no name
}

// CopyForFollower is Copy for a server with the ID sid that follows this server; index is that of
// the database.
func (c *Client) CopyForFollower(ctx context.Context, sid, index uint16, o CopyOptions) error {
	o.flags, o.index = frame.CopyForFollower|uint32(sid)<<16, index
	return c.DB("").Copy(ctx, o)
}

// Copy receives a database as it is at one moment: all records, also expired ones that the server
// has not collected yet. Values come in stored form: with the expiration time in front (5 bytes,
// big-endian, seconds), unless the database is persistent. Other clients of the server go on
// meanwhile.
//
// An error of Begin or Visit ends the copy and is returned. Copy compares counts and a checksum at
// the end, so the records that Visit got are valid only if Copy returns nil. Options.Timeout limits
// each wait for the server, not the whole copy.
func (d *DB) Copy(ctx context.Context, o CopyOptions) error {
	cn, err := d.client.take(ctx)
	if err != nil {
		return err
	}
	defer cn.Close() // its reader is of no use for other calls
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := d.client.watch(cancel)
	defer quiet.Stop()
	paced := &pacedReader{ctx: ctx, in: cn.Conn, quiet: quiet, limit: o.Limit}
	cn.in = bufio.NewReaderSize(paced, copyBuffer)
	return cn.during(ctx, func(cn *conn) error {
		in := copyReceiver{conn: cn, opts: o, digest: sha256.New()}
		if o.Version != nil {
			o.flags |= frame.CopyVersions
		}
		if o.Newest {
			o.flags |= frame.CopyNewest
		}
		return in.run(frame.CopyRequest{Flags: o.flags, Name: []byte(d.name), DBIdx: o.index, From: o.From})
	})
}

// copyReceiver receives one copy.
type copyReceiver struct {
	conn   *conn
	opts   CopyOptions
	info   CopyInfo
	count  uint64
	bytes  uint64
	digest hash.Hash
}

func (r *copyReceiver) run(request frame.CopyRequest) error {
	r.conn.out = frame.AppendCopyRequest(r.conn.out[:0], request)
	if err := r.conn.send(); err != nil {
		return err
	}
	if err := r.begin(); err != nil {
		return err
	}
	for {
		part, err := readPart(r.conn, frame.DecodeCopyPart)
		if err != nil {
			return err
		}
		switch part.Kind {
		case frame.CopyBlock:
			err = r.block(part.Records)
		case frame.CopyFailed:
			err = copyFailed(part)
		default:
			return r.end(part)
		}
		if err != nil {
			return err
		}
	}
}

// begin reads the header, or the reason why there is none.
func (r *copyReceiver) begin() error {
	switch first, err := r.conn.in.Peek(1); {
	case errors.Is(err, io.EOF):
		return &Error{Code: NotImplemented, Message: ErrNoCopy.Error(), Err: ErrNoCopy}
	case err != nil:
		return networkError(err)
	case frame.Magic(first[0]) != frame.Copy:
		part, err := readPart(r.conn, frame.DecodeCopyPart)
		if err == nil && part.Kind == frame.CopyFailed {
			return copyFailed(part)
		}
		return &Error{Code: NotImplemented, Message: ErrNoCopy.Error(), Err: ErrNoCopy}
	}
	h, err := readPart(r.conn, frame.DecodeCopyHeader)
	if err != nil {
		return err
	}
	r.info = CopyInfo{
		TS: h.TS, LogID: h.LogID, DB: h.DBIdx, Count: int64(h.Count), Size: int64(h.Size),
		Persistent: h.Flags&frame.CopyPersistent != 0,
		Ascending:  h.Flags&frame.CopyAscending != 0,
		Decimal:    h.Flags&frame.CopyDecimal != 0,
		Versioned:  h.Flags&frame.CopyVersioned != 0,
		ClearedAt:  h.ClearedAt, ClearedBy: h.ClearedBy, Floor: h.Floor,
		Newest: h.Newest, NewestBy: h.NewestBy,
	}
	return r.opts.Begin(r.info)
}

func copyFailed(part frame.CopyPart) error {
	return &Error{Code: Internal, Message: string(part.Text)}
}

// block calls visit for the records of a block.
func (r *copyReceiver) block(records []byte) error {
	_, _ = r.digest.Write(records) // documented never to fail
	r.bytes += uint64(len(records))
	for len(records) > 0 {
		n, err := r.record(records)
		if err != nil {
			return err
		}
		r.count++
		records = records[n:]
	}
	return nil
}

// record calls visit for the first of the records, and returns its length.
func (r *copyReceiver) record(records []byte) (int, error) {
	if r.info.Versioned {
		v, n, err := frame.DecodeCopyVersion(records)
		if err != nil {
			return 0, networkError(err)
		}
		return n, r.opts.Version(v.Key, v.Value, CopyVersion{Stamp: v.Stamp, SID: v.SID, Removed: v.Removed})
	}
	record, n, err := frame.DecodeCopyRecord(records)
	if err != nil {
		return 0, networkError(err)
	}
	return n, r.opts.Visit(record.Key, record.Value)
}

// end compares the received records with the counts and the checksum of the server.
func (r *copyReceiver) end(part frame.CopyPart) error {
	if r.count != part.Count || r.bytes != part.Bytes || !bytes.Equal(r.digest.Sum(nil), part.Digest[:]) {
		return networkError(fmt.Errorf("the copy is damaged: %d records with %d bytes came of %d with %d, or other ones",
			r.count, r.bytes, part.Count, part.Bytes))
	}
	return nil
}

// paceSteps is how often a second a paced reader reads.
const paceSteps = 20

// pacedReader reads at most limit bytes a second from a connection. Only the time in which it waits
// for the server counts as silence of the server, not its own pauses, nor the time in which its
// caller does not read.
type pacedReader struct {
	ctx   context.Context
	in    net.Conn
	quiet silence
	limit int64 // 0: none
	begin time.Time
	n     int64
}

// Read reads what has arrived, at most the share of one step.
func (r *pacedReader) Read(p []byte) (int, error) {
	if r.limit > 0 {
		p = p[:min(int64(len(p)), max(1, r.limit/paceSteps))]
		if err := r.pause(); err != nil {
			return 0, err
		}
	}
	r.quiet.Reset(r.quiet.limit)
	n, err := r.in.Read(p)
	r.quiet.Stop()
	r.n += int64(n)
	return n, err
}

// pause waits until the bytes read so far are within the limit.
func (r *pacedReader) pause() error {
	if r.begin.IsZero() {
		r.begin = time.Now()
	}
	due := time.Duration(float64(r.n) / float64(r.limit) * float64(time.Second))
	late := time.NewTimer(due - time.Since(r.begin))
	defer late.Stop()
	select {
	case <-late.C:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}
