package filestore

import "github.com/cespare/xxhash/v2"

// RecordSum returns what a record adds to Meta.Sum; value is in stored form.
//
// Pages of bbolt have no checksums: a disk can change a byte of a value and nothing else looks
// wrong. Therefore the file keeps one checksum of all its records: Meta.Sum is the sum of RecordSum
// over the records, modulo 2^64. A checkpoint has the old and the new value of each key at hand. It
// subtracts the old record's part and adds the new record's, in the transaction that changes the
// record. Verify, compact and repair add up what they read and compare.
//
// The sum says whether all records are as they were written, not which record is damaged. Rejected:
// a checksum in each record, which would name the record but cost eight bytes of each and a new
// format. A user who has the update log can bring the right values in from there.
func RecordSum(key, value []byte) uint64 {
	const golden, mix = 0x9E3779B97F4A7C15, 0xFF51AFD7ED558CCD
	// With the product, two records whose values have changed places do not add up to the same sum.
	h := xxhash.Sum64(value) ^ xxhash.Sum64(key)*golden
	h = (h ^ h>>33) * mix
	return h ^ h>>33
}

// addRecord counts a record that the file gets: Count, Bytes and Sum change together.
func (m *Meta) addRecord(key, value []byte) {
	m.Count++
	m.Bytes += int64(len(key) + len(value))
	if m.Summed {
		m.Sum += RecordSum(key, value)
	}
}

// dropRecord is the reverse of addRecord.
func (m *Meta) dropRecord(key, value []byte) {
	m.Count--
	m.Bytes -= int64(len(key) + len(value))
	if m.Summed {
		m.Sum -= RecordSum(key, value)
	}
}
