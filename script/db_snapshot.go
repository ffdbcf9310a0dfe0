package script

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/record"
)

// A snapshot of one database, in the format of the original:
//
//	"KCSS\n\0"
//	per record  0x00 | key size | value size | key | value     sizes as in appendVarint
//	0xff
//
// The value begins with the absolute expiration time, 5 bytes big-endian, unless the database keeps
// no expiration times.
const (
	snapshotMagic  = "KCSS\n\x00"
	snapshotRecord = 0x00
	snapshotEnd    = 0xff

	expirySize    = 5
	maxRecordPart = 1 << 30
)

var errSnapshot error = &dberr.Error{Code: dberr.BrokenFile, Message: "invalid snapshot"}

func dbDumpSnapshot(c call) int {
	dest := c.text(2)
	return c.pushBool(c.handleOf(1).do(c, func(d *db.DB) error {
		out, err := os.OpenFile(dest, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
		if err != nil {
			return errOpenFail
		}
		w := bufio.NewWriter(out)
		return errors.Join(dumpSnapshot(c, w, d), w.Flush(), out.Close())
	}))
}

func dumpSnapshot(c call, w *bufio.Writer, d *db.DB) error {
	_, _ = w.WriteString(snapshotMagic) // Flush returns the error
	err := d.Walk(c.s.leash.ask, nil, func(key, value []byte, xt int64) bool {
		c.s.leash.check(c.l)
		if !d.Info().Persistent {
			value = append(binary.BigEndian.AppendUint64(nil, uint64(xt))[3:], value...)
		}
		head := appendVarint(appendVarint([]byte{snapshotRecord}, uint64(len(key))), uint64(len(value)))
		_, _ = w.Write(head)
		_, _ = w.Write(key)
		_, _ = w.Write(value)
		return true
	})
	if err != nil { // updates that were read will never be durable: the file gets no end mark
		return err
	}
	return w.WriteByte(snapshotEnd)
}

// dbLoadSnapshot stores the records of a snapshot. Records that the snapshot lacks stay.
func dbLoadSnapshot(c call) int {
	h := c.handleOf(1)
	source := c.text(2)
	return c.pushBool(h.do(c, func(d *db.DB) error {
		in, err := os.Open(source)
		if err != nil {
			return errOpenFail
		}
		defer in.Close()
		return loadSnapshot(c, bufio.NewReader(in), d, h.pending())
	}))
}

func loadSnapshot(c call, r *bufio.Reader, d *db.DB, p *db.Pending) error {
	magic := make([]byte, len(snapshotMagic))
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != snapshotMagic {
		return errSnapshot
	}
	for {
		c.s.leash.check(c.l)
		kind, err := r.ReadByte()
		switch {
		case err == nil && kind == snapshotEnd:
			return nil
		case err != nil || kind != snapshotRecord:
			return errSnapshot
		}
		key, stored, err := readRecord(r)
		if err != nil {
			return errSnapshot
		}
		xt := record.MaxXT
		if !d.Info().Persistent {
			if len(stored) < expirySize {
				return errSnapshot
			}
			xt = int64(binary.BigEndian.Uint64(append(make([]byte, 3), stored[:expirySize]...)))
			stored = stored[expirySize:]
		}
		if err := d.Set(p, key, stored, absoluteXT(xt)); err != nil {
			return err
		}
	}
}

func readRecord(r *bufio.Reader) (key, value []byte, err error) {
	ksiz, err := readVarint(r)
	if err != nil {
		return nil, nil, err
	}
	vsiz, err := readVarint(r)
	if err != nil || ksiz > maxRecordPart || vsiz > maxRecordPart {
		return nil, nil, errSnapshot
	}
	record := make([]byte, ksiz+vsiz)
	if _, err := io.ReadFull(r, record); err != nil {
		return nil, nil, err
	}
	return record[:ksiz], record[ksiz:], nil
}

func readVarint(r io.ByteReader) (n uint64, err error) {
	for range 10 {
		b, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		n = n<<7 | uint64(b&0x7f)
		if b < 0x80 {
			return n, nil
		}
	}
	return 0, errSnapshot
}
