package rebuild

import (
	"errors"
	"fmt"
	"io"
	"os"

	"gotycoon/db/filestore"
)

// Damage is one thing that is wrong in a database file.
type Damage struct {
	Page   uint64
	Offset int64 // of the page in the file
	What   string
	Whole  bool // the file as a whole is wrong, and no page can be named
}

// Error names the place and what is wrong.
func (d *Damage) Error() string {
	if d.Whole {
		return d.What
	}
	return fmt.Sprintf("page %d, offset %d: %s", d.Page, d.Offset, d.What)
}

// A File is a database file that is read page by page. Nothing in it is believed unchecked.
type File struct {
	path string
	f    *os.File
	pages
	meta meta           // the meta page that counts
	desc filestore.Meta // the description
	data bucket

	packed   bucket      // page 0: there is none
	versions bucket      // with Meta.LWW
	runs     []runBucket // the finished ones, oldest first
	doubt    bool        // there are unfinished ones
	lowest   Sums        // of the last Records
}

// Sums are the number, the key and value bytes, and the checksum of records.
type Sums struct {
	Count, Bytes int64
	Sum          uint64
}

func (s *Sums) add(key, value []byte) {
	s.Count++
	s.Bytes += int64(len(key) + len(value))
	s.Sum += filestore.RecordSum(key, value)
}

// pages gives access to the pages of a file.
type pages struct {
	r        io.ReaderAt
	size     int64 // of the file in bytes
	pageSize int64
	end      uint64 // pages in use
}

// A bucket is where a bucket's records are.
type bucket struct {
	page   uint64 // that names the bucket
	root   uint64 // 0: the records are in inline
	inline []byte
}

// A page is a page of the file, with the overflow pages behind it.
type page struct {
	head
	raw []byte
}

// Open opens a database file and takes its lock: exclusive keeps everybody out until Close,
// otherwise others may read. The error is filestore.ErrInUse when a server has the file open, and a
// *Damage when the top of the file cannot be read.
func Open(path string, exclusive, tryLock bool) (*File, error) {
	f, err := filestore.OpenOffline(path, exclusive, tryLock)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	file := &File{path: path, f: f}
	info, err := f.Stat()
	if err == nil {
		err = file.load(f, info.Size())
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return file, nil
}

// openSized opens a file for reading, with its lock, and returns its size. The file may be damaged.
func openSized(path string, tryLock bool) (*os.File, int64, error) {
	f, err := filestore.OpenOffline(path, false, tryLock)
	if err != nil {
		return nil, 0, fmt.Errorf("open %s: %w", path, err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

func (f *File) load(r io.ReaderAt, size int64) (err error) {
	f.pages = pages{r: r, size: size}
	if f.meta, err = newestMeta(f.r, f.size); err != nil {
		return err
	}
	f.pageSize, f.end = int64(f.meta.pageSize), f.meta.end
	top, err := f.top(f.meta.root)
	if err != nil {
		return err
	}
	f.desc, f.data, f.packed, f.versions = top.desc, top.data, top.packed, top.versions
	unfinished := 0
	f.runs, unfinished, err = f.listRuns(top.runs)
	f.doubt = unfinished > 0
	return err
}

// Meta returns the file's description.
func (f *File) Meta() filestore.Meta { return f.desc }

// Runs returns the number of finished runs.
func (f *File) Runs() int { return len(f.runs) }

// About returns how many bytes of keys and values the file has; with runs, an estimate.
func (f *File) About() int64 {
	if n := len(f.runs); n > 0 {
		return f.runs[n-1].info.AboutBytes
	}
	return f.desc.Bytes
}

// Size returns the size of the file in bytes.
func (f *File) Size() int64 { return f.size }

// Current reports whether the file still is the one that its path names.
func (f *File) Current() bool { return filestore.Current(f.f, f.path) }

// Close gives the file and its lock back.
func (f *File) Close() error { return f.f.Close() }

// Records calls visit for every record in the order of keys, with the value in stored form; both
// are valid during the call. It ends at the first error of visit, or with a *Damage.
func (f *File) Records(visit func(key, value []byte) error) error {
	f.lowest = Sums{}
	m, stop, err := f.updates()
	defer stop()
	if err != nil {
		return f.damaged(err)
	}
	w := mergeWriter{m: m, put: visit}
	err = f.bottom(func(key, value []byte) error {
		f.lowest.add(key, value)
		return w.base(key, value)
	})
	if err == nil {
		err = w.rest()
	}
	return f.damaged(err)
}

// Bottom returns the sums of the records below the runs, those included that runs hide, after
// Records. They should be the sums in the description.
func (f *File) Bottom() Sums { return f.lowest }

// updates returns the updates of all runs as one list, and a function that ends their walks.
//
// A run may seem unfinished only because a damaged page number leads to a part of it, and nothing
// in the run would tell. Check tells: the rest of the pages are left over.
func (f *File) updates() (m *merged, stop func(), err error) {
	m = &merged{}
	stop = f.addRuns(m, f.runs, f.desc)
	if f.doubt {
		report, err := check(f.r, f.size, nil)
		if err == nil && report.Found > 0 {
			err = &report.Damage[0]
		}
		if err != nil {
			return m, stop, err
		}
		f.doubt = false
	}
	return m, stop, m.begin()
}

// Versions is Records for the versions that a file with Meta.LWW keeps. Other files have none.
func (f *File) Versions(visit func(key []byte, e filestore.LastUpdate) error) error {
	if f.versions.page == 0 {
		return nil
	}
	m, stop, err := f.updates()
	defer stop()
	if err != nil {
		return f.damaged(err)
	}
	w := mergeRuns(m, visit)
	err = f.each(f.versions, filestore.VersionPrefix, noVersion, func(key, value []byte) error {
		e, ok := filestore.DecodeEntry(value)
		if !ok {
			return f.damage(f.versions.page, "leads to something that is "+noVersion)
		}
		return w.base(key, e)
	})
	if err == nil {
		err = w.rest()
	}
	return f.damaged(err)
}

const noVersion = "no version of a record"

func (f *File) each(b bucket, prefix byte, not string, visit func(key, value []byte) error) error {
	w := walker{pages: &f.pages, bad: func(d *Damage, _ span) error { return d }}
	w.leaf = func(p page, in span) error {
		return p.records(in, func(e element) error {
			if e.flags != 0 || len(e.key) == 0 || e.key[0] != prefix {
				return f.damage(p.id, "holds something that is %s", not)
			}
			return visit(e.key[1:], e.value)
		})
	}
	return w.bucket(b)
}

// damaged names the file in an error that is one of its damages. An error of visit stays as it is.
func (f *File) damaged(err error) error {
	if _, ok := errors.AsType[*Damage](err); ok {
		return fmt.Errorf("%s is damaged: %w", f.path, err)
	}
	return err
}
