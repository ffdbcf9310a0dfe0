package binproto

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"strconv"

	"gotycoon/access"
	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/expr"
	"gotycoon/db/filestore"
	"gotycoon/internal/netio"
)

// copyBlock is the size of the records in a block. The last record may exceed it.
const copyBlock = 64 << 10

var (
	errCopyFlags = errors.New("the request has flags that this server does not know")
	errCopyFrom  = errors.New("a copy can go on behind a key only where keys are in the order of their bytes")
)

// serveCopy sends a database as it is at this moment. A slow client delays nobody, but the server
// keeps the old values of records that change meanwhile, see db.(*DB).Freeze. The client may be as
// slow as the connection's time limit allows; the old values are dropped when the connection ends.
func (h *Handler) serveCopy(c *netio.Conn, peer string) (keep bool) {
	var request frame.CopyRequest
	if next(c, frame.DecodeCopyRequest, &request) != nil {
		return false
	}
	if request.Flags&frame.CopyForFollower != 0 && h.opts.Source != nil {
		defer h.opts.Source.Copying(peer, request)()
	}
	s := copySender{conn: c, digest: sha256.New()}
	end := h.opts.Meters.Copies.Begin()
	err := s.serve(h, request)
	end(err == nil)
	if err != nil {
		if s.lost {
			return false
		}
		h.opts.Logger.Error("copy of a database: " + err.Error())
		s.part(frame.CopyPart{Kind: frame.CopyFailed, Text: []byte(err.Error())})
		return false
	}
	return true
}

// copySender sends one copy.
type copySender struct {
	conn   *netio.Conn
	block  []byte
	count  uint64
	bytes  uint64
	digest hash.Hash
	lost   bool // the client has gone
	from   []byte
	passed uint64 // records up to from, which the client has already

	removals uint64 // removals among the records sent
}

func (s *copySender) serve(h *Handler, r frame.CopyRequest) (err error) {
	d, err := h.copied(r)
	if err != nil {
		return err
	}
	about := h.about(d)
	if err := s.conn.Visitor.Database(access.Replicate, about); err != nil {
		return err
	}
	defer s.conn.Visitor.While(access.Replicate, about, s.conn.Cut)()
	f, err := d.Freeze()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	header := frame.CopyHeader{
		Flags: copyFlags(d), DBIdx: uint16(d.Index()), TS: uint64(f.Stamp()),
		Count: uint64(f.Count()), Size: uint64(f.Size()), LogID: f.LogID,
	}
	scan := func() error { return f.Scan(s.record) }
	if v, ok := f.Versions(); ok && r.Flags&frame.CopyVersions != 0 {
		header.Flags |= frame.CopyVersioned
		header.ClearedAt, header.ClearedBy, header.Floor = uint64(v.Cleared.Stamp), v.Cleared.SID, uint64(v.Floor)
		scan = func() error { return f.ScanVersions(s.version) }
	}
	if r.Flags&frame.CopyNewest != 0 {
		header.Flags |= frame.CopyUpdated
		header.Newest, header.NewestBy = uint64(f.Newest), f.By
	}
	s.conn.Out = frame.AppendCopyHeader(s.conn.Out, header)
	s.from = r.From
	if err := scan(); err != nil {
		return err
	}
	if err := s.send(); err != nil {
		return err
	}
	if n := s.passed + s.count - s.removals; n != uint64(f.Count()) {
		return fmt.Errorf("the database has %d records, but its count is %d", n, f.Count())
	}
	end := frame.CopyPart{Kind: frame.CopyEnd, Count: s.count, Bytes: s.bytes}
	s.digest.Sum(end.Digest[:0])
	s.part(end)
	return nil
}

// about returns a database as access rules name it. Rules name the services' database by its number
// only, because a database of the command line may have the same file name.
func (h *Handler) about(d *db.DB) access.Database {
	if d == h.opts.Services {
		return access.ServicesDatabase{}
	}
	return d
}

// copied returns the database that a request names, by its name or number. No other request finds
// the services' database: followers and backups copy it, and clients cannot change it.
func (h *Handler) copied(r frame.CopyRequest) (*db.DB, error) {
	if r.Flags&0xffff&^(frame.CopyForFollower|frame.CopyVersions|frame.CopyNewest) != 0 {
		return nil, errCopyFlags
	}
	name := string(r.Name)
	if name == "" {
		name = strconv.Itoa(int(r.DBIdx))
	}
	d := h.opts.Catalog.Lookup(name)
	if n, err := strconv.Atoi(name); d == nil && err == nil {
		d = h.opts.Catalog.DB(n)
		if s := h.opts.Services; s != nil && n == s.Index() {
			d = s
		}
	}
	if d == nil {
		return nil, fmt.Errorf("there is no database %s", name)
	}
	if len(r.From) > 0 && copyFlags(d)&frame.CopyAscending == 0 {
		return nil, errCopyFrom
	}
	return d, nil
}

func copyFlags(d *db.DB) (flags uint32) {
	if d.Info().Persistent {
		flags |= frame.CopyPersistent
	}
	switch info := d.Info(); {
	case !info.Ordered:
	case info.Order == expr.Lexical:
		flags |= frame.CopyAscending
	case info.Order != expr.LexicalDesc:
		flags |= frame.CopyDecimal
	}
	return flags
}

// record adds a record to the block.
func (s *copySender) record(key, value []byte) error {
	if len(s.from) > 0 && bytes.Compare(key, s.from) <= 0 {
		s.passed++
		return nil
	}
	s.block = frame.AppendCopyRecord(s.block, frame.CopyRecord{Key: key, Value: value})
	return s.added()
}

// version is record for a copy with versions.
func (s *copySender) version(key, value []byte, v filestore.LastUpdate) error {
	if len(s.from) > 0 && bytes.Compare(key, s.from) <= 0 {
		if !v.Removed {
			s.passed++
		}
		return nil
	}
	s.block = frame.AppendCopyVersion(s.block, frame.CopyVersion{
		CopyRecord: frame.CopyRecord{Key: key, Value: value}, Stamp: uint64(v.Stamp), SID: v.SID, Removed: v.Removed})
	if v.Removed {
		s.removals++
	}
	return s.added()
}

// added counts the record just added, and sends a full block.
func (s *copySender) added() error {
	s.count++
	if len(s.block) < copyBlock {
		return nil
	}
	return s.send()
}

// send sends the records of the block.
func (s *copySender) send() error {
	if len(s.block) > 0 {
		_, _ = s.digest.Write(s.block) // documented never to fail
		s.bytes += uint64(len(s.block))
		s.part(frame.CopyPart{Kind: frame.CopyBlock, Records: s.block})
		if s.block = s.block[:0]; cap(s.block) > keepReply {
			s.block = nil
		}
	}
	err := s.conn.Flush()
	s.lost = err != nil
	return err
}

func (s *copySender) part(p frame.CopyPart) { s.conn.Out = frame.AppendCopyPart(s.conn.Out, p) }
