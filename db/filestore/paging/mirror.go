package paging

import (
	"fmt"
	"os"

	bolt "go.etcd.io/bbolt"
)

// A Mirror is a second map of a file, which tells the system which pages are read often.
//
// Linux gives up the pages of bbolt's map in the order in which they came, however often they are
// read (see the package comment). A Mirror is a map without that advice. After a lookup it touches
// the pages that were read in the first map, which so are in memory: a touch reads nothing from the
// disk, and takes some ten nanoseconds. The system sees the touch, and keeps the page.
//
// What is touched is the page in which a value begins, which for most values is the leaf that has
// the key. These are the lookups that a Mirror is told of: of one record wherever it is in the
// file, and of many records at a time where they are below the runs. It is not told of
//
//   - the other pages of a value that takes several. They have not been read yet, so a touch would
//     read the disk.
//   - the page at the beginning of a leaf with large values, unless the value begins there.
//   - the records of a run that a lookup of many records at a time has found.
//   - lookups that find nothing, and scans.
//
// The branch pages above the leaf are touched too. They are a hundredth of a file, and each lookup
// reads one or two of the lower ones: when these leave memory, a lookup reads the disk twice.
//
// Rejected: to map the file without the advice only. Then each page that is not in memory brings
// the pages around it, as many as the disk's read-ahead says: 128 KiB where that is small, 8 MiB
// were met. Rejected too: mlock of the branch pages. A process may lock 8 MiB unless root says
// otherwise, and the branch pages of 30 GB are 300 MB; and it does nothing for leaves.
type Mirror struct {
	data   []byte
	depths depths // of the trees of the file
}

// NewMirror maps a file a second time. size is the address space that it takes, not memory; what is
// beyond it is not touched.
func NewMirror(path string, info os.FileInfo, size int64) (*Mirror, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the map stays
	now, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !os.SameFile(now, info) {
		return nil, fmt.Errorf("map %s: another file has this name now", path)
	}
	data, err := mapAgain(f, size)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return &Mirror{data: data}, nil
}

// Size returns up to which size of the file the mirror reaches.
func (m *Mirror) Size() int64 { return int64(len(m.data)) }

// Close ends the map. Nobody may use it any more.
func (m *Mirror) Close() error { return unmap(m.data) }

// Read tells the system that a lookup of a key has read b in a bucket. The first page of b is in
// memory, since the lookup has been there. The compiler would leave out reads whose result nobody
// uses, so they are added up.
//
//go:noinline
func (m *Mirror) Read(bucket *bolt.Bucket, key, b []byte) (sum byte) {
	f := fileOf(bucket.Tx())
	at, ok := f.offset(b)
	if !ok {
		return 0
	}
	if len(b) == 0 { // the page behind it may not be in memory, that of the key is
		at--
	}
	sum = m.touch(at)
	page := uint64(bucket.RootPage())
	if page == 0 { // the bucket is inside the page of another one
		return sum
	}
	for range m.depths.of(bucket, f, key) { // not the leaf: the value may have been found in the one behind it
		b, ok := f.branch(page)
		if !ok {
			break
		}
		sum += m.touch(int(page) * f.page)
		page = b.child(b.find(key))
	}
	return sum
}

// touch reads a byte.
func (m *Mirror) touch(at int) byte {
	if at >= len(m.data) {
		return 0
	}
	return m.data[at]
}
