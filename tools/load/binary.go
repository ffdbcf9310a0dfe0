package load

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"gotycoon/client/wire/frame"
)

// The binary protocol has bulks only: a set or a get is a bulk of one record.

func checkBinary(l *Load) error {
	if _, err := strconv.ParseUint(l.DB, 10, 16); l.DB != "" && err != nil {
		return errors.New("the binary protocol knows databases by their numbers only")
	}
	return nil
}

func magicOf(o Operation) frame.Magic {
	switch o {
	case Set, SetBulk:
		return frame.SetBulk
	case removeBulk:
		return frame.RemoveBulk
	}
	return frame.GetBulk
}

func writeBinary(out []byte, l *Load, r *request) []byte {
	number, _ := strconv.ParseUint(l.DB, 10, 16) // checkBinary has looked at it
	magic := magicOf(r.operation)
	out = frame.AppendHeader(out, frame.Header{Magic: magic, RNum: uint32(len(r.keys))})
	for _, key := range r.keys {
		if magic == frame.SetBulk {
			out = frame.AppendRecordHead(out, frame.Record{DBIdx: uint16(number), Key: key, Value: []byte(r.value), XT: math.MaxInt64})
			out = append(out, r.value...)
		} else {
			out = frame.AppendKey(out, frame.Key{DBIdx: uint16(number), Key: key})
		}
	}
	return out
}

func readBinary(in *bufio.Reader, r *request) (o outcome, err error) {
	var head [frame.RecordHead]byte
	if _, err := io.ReadFull(in, head[:1]); err != nil {
		return o, err
	}
	if magic := frame.Magic(head[0]); magic != magicOf(r.operation) {
		return o, fmt.Errorf("the server answers 0x%02X, and closes the connection", byte(magic))
	}
	if _, err := io.ReadFull(in, head[1:frame.ReplyLen]); err != nil {
		return o, err
	}
	hits, _, err := frame.DecodeReply(head[:frame.ReplyLen], magicOf(r.operation))
	if err != nil {
		return o, err
	}
	o.missing = r.operation == Get && hits == 0
	if magicOf(r.operation) == frame.SetBulk && int(hits) != len(r.keys) {
		return o, refused(fmt.Sprintf("that it has stored %d of %d records: is there a database of this number?", hits, len(r.keys)))
	}
	if magicOf(r.operation) != frame.GetBulk {
		return o, nil
	}
	for range hits {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return o, err
		}
		// The head is database, size of the key, size of the value, expiration time.
		size := int(binary.BigEndian.Uint32(head[2:])) + int(binary.BigEndian.Uint32(head[6:]))
		if _, err := in.Discard(size); err != nil {
			return o, err
		}
	}
	return o, nil
}
