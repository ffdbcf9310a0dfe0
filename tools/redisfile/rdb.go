package redisfile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc64"
	"io"
	"math"
	"strconv"
)

// An RDB file:
//
//	"REDIS" | version, 4 digits | opcodes and keys | 0xFF | CRC-64 of all before (little-endian)
//
// A key:
//
//	[0xFC | expires, ms, 8 bytes little-endian, or 0xFD | seconds, 4 bytes] | type | key | value
//
// Keys and values are strings: a length, or a mark for an integer or for compressed bytes. Before
// the keys of a database stands 0xFE with its number.
const (
	opSlotInfo   = 0xF4
	opFunction   = 0xF5
	opModuleAux  = 0xF7
	opIdle       = 0xF8
	opFreq       = 0xF9
	opAux        = 0xFA
	opResize     = 0xFB
	opExpiresMS  = 0xFC
	opExpires    = 0xFD
	opDatabase   = 0xFE
	opEnd        = 0xFF
	newestRDB    = 12 // of redis 7.4 and 8
	firstWithCRC = 5
)

// RDB calls visit for the keys with strings in a database of an RDB file; expires is in seconds
// since 1970, or Never. The slices are the caller's.
func RDB(r io.Reader, database int, visit func(key, value []byte, expires int64) error) (Left, error) {
	return readRDB(bufio.NewReaderSize(r, readBuffer), database, visit)
}

const readBuffer = 256 << 10

// readRDB reads from in up to the end of the RDB file, which in an AOF is followed by commands.
func readRDB(in *bufio.Reader, database int, visit func(key, value []byte, expires int64) error) (Left, error) {
	d := &rdb{in: in, table: crc64.MakeTable(jones), wanted: database, visit: visit}
	err := d.read()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = damaged("it ends too early")
	}
	return d.left, err
}

// rdb reads one file.
type rdb struct {
	in     *bufio.Reader
	crc    uint64
	table  *crc64.Table
	wanted int
	visit  func(key, value []byte, expires int64) error
	left   Left

	database int
	expires  int64 // of the next key
}

// jones is the polynomial of redis's checksum, with its bits reversed.
const jones = 0x95AC9329AC4BC9B5

// bytes reads so many bytes. They are read in pieces, so that a wrong length does not allocate more
// memory than the file has bytes.
func (d *rdb) bytes(n uint64) ([]byte, error) {
	var b bytes.Buffer
	if n > math.MaxInt64 {
		return nil, damaged("a length of %d", n)
	}
	if got, err := io.CopyN(&b, d.in, int64(n)); err != nil {
		return nil, damaged("%d bytes of %d are there: %w", got, n, io.ErrUnexpectedEOF)
	}
	d.crc = ^crc64.Update(^d.crc, d.table, b.Bytes())
	return b.Bytes(), nil
}

func (d *rdb) byte() (byte, error) {
	b, err := d.in.ReadByte()
	if err == nil {
		d.crc = ^crc64.Update(^d.crc, d.table, []byte{b})
	}
	return b, err
}

func (d *rdb) read() error {
	head, err := d.bytes(9)
	if err != nil {
		return err
	}
	version, err := strconv.Atoi(string(head[5:]))
	if string(head[:5]) != "REDIS" || err != nil {
		return damaged("it does not begin with REDIS and a version")
	}
	if version > newestRDB {
		return damaged("its version is %d, and %d is the newest one that is known", version, newestRDB)
	}
	for {
		op, err := d.byte()
		if err != nil {
			return err
		}
		if op == opEnd {
			return d.end(version)
		}
		if err := d.part(op); err != nil {
			return err
		}
	}
}

// end compares the checksum; zeros mean that the server was told to write none.
func (d *rdb) end(version int) error {
	if version < firstWithCRC {
		return nil
	}
	want := d.crc
	sum, err := d.bytes(8)
	if err != nil {
		return err
	}
	if have := binary.LittleEndian.Uint64(sum); have != 0 && have != want {
		return damaged("its checksum is %016x, and that of its content %016x", have, want)
	}
	return nil
}

// part reads what an opcode announces.
func (d *rdb) part(op byte) (err error) {
	switch op {
	case opDatabase:
		var n uint64
		n, err = d.length()
		d.database = int(min(n, math.MaxInt32))
	case opExpiresMS:
		var b []byte
		if b, err = d.bytes(8); err == nil {
			d.expires = max(1, int64(binary.LittleEndian.Uint64(b))/1000)
		}
	case opExpires:
		var b []byte
		if b, err = d.bytes(4); err == nil {
			d.expires = max(1, int64(binary.LittleEndian.Uint32(b)))
		}
	case opResize:
		err = d.skipLengths(2)
	case opSlotInfo:
		err = d.skipLengths(3)
	case opAux:
		err = d.skipStrings(2)
	case opFunction:
		d.left.ofType("function")
		err = d.skipStrings(1)
	case opFreq:
		_, err = d.byte()
	case opIdle:
		err = d.skipLengths(1)
	case opModuleAux:
		if err = d.skipLengths(3); err == nil { // module, and when it was written: an opcode and a number
			err = d.skipModule()
		}
	default:
		err = d.key(op)
	}
	return err
}

// key reads a key and its value.
func (d *rdb) key(kind byte) error {
	key, err := d.string()
	if err != nil {
		return err
	}
	expires := d.expires
	d.expires = Never
	if kind != typeString {
		name, err := d.skipValue(kind)
		switch {
		case err != nil:
			return err
		case d.database != d.wanted:
			d.left.ofDatabase(d.database)
		default:
			d.left.ofType(name)
		}
		return nil
	}
	value, err := d.string()
	if err != nil {
		return err
	}
	if d.database != d.wanted {
		d.left.ofDatabase(d.database)
		return nil
	}
	return d.visit(key, value, expires)
}
