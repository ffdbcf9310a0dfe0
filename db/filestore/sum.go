package filestore

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// Pages of bbolt have no checksums, so that a byte of a value can change on a disk without anything else looking wrong. The file
// therefore keeps one checksum of all its records, Meta.Sum: the sum of RecordSum over the records, modulo 2^64. A checkpoint has the
// old and the new value of each key in its hands, subtracts what the old record added and adds what the new one does, in the
// transaction that changes the record. Verify, compact and repair add up what they read and compare.
//
// The sum says whether all records are as they were written, not which one is not. A checksum in each record would say that, and would
// cost eight bytes per record in every file and a new format; who has the update log can bring the right values in from there.

// RecordSum returns what a record adds to Meta.Sum; value is in stored form.
func RecordSum(key, value []byte) uint64 {
	const golden, mix = 0x9E3779B97F4A7C15, 0xFF51AFD7ED558CCD
	h := xxhash.Sum64(value) ^ xxhash.Sum64(key)*golden // the product, so that two records whose values change places do not add up to the same
	h = (h ^ h>>33) * mix
	return h ^ h>>33
}

// Count and Bytes of a description, and its Sum, change with each record.
func (m *Meta) addRecord(key, value []byte) {
	m.Count++
	m.Bytes += int64(len(key) + len(value))
	if m.Summed {
		m.Sum += RecordSum(key, value)
	}
}

func (m *Meta) dropRecord(key, value []byte) {
	m.Count--
	m.Bytes -= int64(len(key) + len(value))
	if m.Summed {
		m.Sum -= RecordSum(key, value)
	}
}

// The description ends with a checksum of the text before it, because a time stamp with a damaged digit would make a server pass over
// updates in its log:
//
//	{"Format":1, … ,"Check":"0123456789abcdef"}
const (
	checkMark = `,"Check":"`
	checkLen  = len(checkMark) + 16 + len(`"}`)
)

var errDescription = errors.New("the database's description is damaged: its checksum does not match; \"kttimedmgr repair\" saves the records")

// encodeMeta returns the text of a description.
func encodeMeta(m Meta) ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode the database's description: %w", err)
	}
	text = text[:len(text)-1]
	sum := binary.BigEndian.AppendUint64(nil, xxhash.Sum64(text))
	return append(hex.AppendEncode(append(text, checkMark...), sum), `"}`...), nil
}

// decodeMeta is the reverse of encodeMeta. Descriptions that were written before there were checksums are taken without one.
func decodeMeta(text []byte) (Meta, error) {
	var m Meta
	checked := false
	if end := len(text) - checkLen; end > 0 && bytes.HasPrefix(text[end:], []byte(checkMark)) {
		var sum [8]byte
		if _, err := hex.Decode(sum[:], text[end+len(checkMark):len(text)-2]); err != nil || binary.BigEndian.Uint64(sum[:]) != xxhash.Sum64(text[:end]) {
			return m, errDescription
		}
		checked = true
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("read the database's description: %w", err)
	}
	if m.Summed && !checked { // both came with the same version: the mark of the checksum is damaged
		return m, errDescription
	}
	return m, nil
}
