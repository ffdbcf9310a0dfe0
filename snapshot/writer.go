package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Writer encodes a snapshot or a dump. It is for one goroutine.
type Writer struct {
	w     io.Writer
	mark  byte
	end   []byte // written behind the last record
	enc   encoder
	block bytes.Buffer // the present compressed block
	raw   int          // the block's size before compression; 0: no block is open
	head  []byte
	chunk []byte // records that are not written yet, without a compressor
}

// plainChunk: uncompressed records are written together until they reach this size.
const plainChunk = 128 << 10

// NewWriter writes the header of a snapshot and returns a Writer for its records.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	s := &Writer{w: w, mark: recordMark}
	if h.Compressor != Plain {
		var err error
		if s.enc, err = newEncoder(h.Compressor); err != nil {
			return nil, err
		}
	}
	_, err := w.Write(appendHeader(nil, h))
	return s, err
}

// NewDumpWriter begins a dump of the command line tools and returns a Writer for its records.
func NewDumpWriter(w io.Writer) (*Writer, error) {
	_, err := io.WriteString(w, dumpMagic)
	return &Writer{w: w, mark: dumpRecordMark, end: []byte{dumpEndMark}}, err
}

// Add appends a record; value is in stored form. Add does not keep the slices.
func (s *Writer) Add(key, value []byte) error {
	s.head = append(s.head[:0], s.mark)
	s.head = appendVarnum(s.head, len(key))
	s.head = appendVarnum(s.head, len(value))
	s.head = append(s.head, key...)
	if s.enc == nil {
		return s.addPlain(value)
	}
	if s.raw == 0 {
		s.block.Reset()
		if err := s.enc.begin(&s.block); err != nil {
			return err
		}
	}
	if _, err := s.enc.Write(s.head); err != nil {
		return err
	}
	if _, err := s.enc.Write(value); err != nil {
		return err
	}
	s.raw += len(s.head) + len(value)
	if s.raw < blockLimit {
		return nil
	}
	return s.endBlock()
}

func (s *Writer) addPlain(value []byte) error {
	s.chunk = append(s.chunk, s.head...)
	if len(s.chunk)+len(value) <= plainChunk {
		s.chunk = append(s.chunk, value...)
		return nil
	}
	if err := s.writeChunk(); err != nil {
		return err
	}
	_, err := s.w.Write(value)
	return err
}

func (s *Writer) writeChunk() error {
	_, err := s.w.Write(s.chunk)
	s.chunk = s.chunk[:0]
	return err
}

// endBlock writes the present block.
func (s *Writer) endBlock() error {
	if err := s.enc.finish(); err != nil {
		return err
	}
	s.raw = 0
	if s.block.Len() > math.MaxUint32 {
		return fmt.Errorf("a block of %d bytes does not fit into a snapshot", s.block.Len())
	}
	if _, err := s.w.Write(binary.BigEndian.AppendUint32(nil, uint32(s.block.Len()))); err != nil {
		return err
	}
	_, err := s.w.Write(s.block.Bytes())
	return err
}

// Close writes the records that are still in memory, and the end mark of a dump. It does not close
// the file.
func (s *Writer) Close() error {
	if s.raw > 0 {
		if err := s.endBlock(); err != nil {
			return err
		}
	}
	s.chunk = append(s.chunk, s.end...)
	if len(s.chunk) == 0 {
		return nil
	}
	return s.writeChunk()
}
