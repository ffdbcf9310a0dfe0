package election

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"

	"google.golang.org/protobuf/proto"
)

// A batch collects items. In the file it stands behind its size, checksum and number:
//
//	batch:  0        4        8          16                         16+n
//	        ┌────────┬────────┬──────────┬──────────────────────────┐
//	        │ n, u32 │ CRC32C │ no., u64 │ items                    │    little-endian
//	        └────────┴────────┴──────────┴──────────────────────────┘
//	                          └─ the checksum covers this ──────────┘
//	item:   0        1        5          5+n
//	        ┌────────┬────────┬──────────┐
//	        │ kind   │ n, u32 │ content  │
//	        └────────┴────────┴──────────┘
type batch struct {
	bytes []byte
	err   error
}

func (b *batch) add(kind byte, content []byte) {
	b.bytes = append(b.bytes, kind)
	b.bytes = binary.LittleEndian.AppendUint32(b.bytes, uint32(len(content)))
	b.bytes = append(b.bytes, content...)
}

func (b *batch) addMessage(kind byte, m proto.Message) {
	content, err := proto.Marshal(m)
	b.err = errors.Join(b.err, err)
	b.add(kind, content)
}

func (b *batch) addIdentity(who identity) {
	content, err := json.Marshal(who)
	b.err = errors.Join(b.err, err)
	b.add(itemIdentity, content)
}

// sealed returns the batch as it stands in the file.
func (b *batch) sealed(no uint64) []byte {
	s := make([]byte, batchHead, batchHead+len(b.bytes))
	binary.LittleEndian.PutUint32(s, uint32(len(b.bytes)))
	binary.LittleEndian.PutUint64(s[8:], no)
	s = append(s, b.bytes...)
	binary.LittleEndian.PutUint32(s[4:], crc32.Checksum(s[8:], castagnoli))
	return s
}

const (
	batchHead = 16
	itemHead  = 5
)

// The kinds of items.
const (
	itemIdentity = iota + 1
	itemSnapshot
	itemHardState
	itemEntry
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// parseBatch returns the number and the items of the batch at the beginning of data, or nil if
// there is no intact one.
func parseBatch(data []byte) (uint64, []byte) {
	if len(data) < batchHead {
		return 0, nil
	}
	n := binary.LittleEndian.Uint32(data)
	if n == 0 || uint64(n) > uint64(len(data)-batchHead) {
		return 0, nil
	}
	covered := data[8 : batchHead+n]
	if crc32.Checksum(covered, castagnoli) != binary.LittleEndian.Uint32(data[4:]) {
		return 0, nil
	}
	return binary.LittleEndian.Uint64(covered), covered[8:]
}
