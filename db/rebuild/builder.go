package rebuild

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gotycoon/db/filestore"
	"gotycoon/internal/vfs"
)

// suffix and eight random digits make the name under which a file is built.
const suffix = ".rebuild-"

// sortSuffix is added to the name of the file that takes sorted records. That file is removed as
// soon as it exists, but a power cut may bring it back.
const sortSuffix = ".sort"

// Options of a Builder. The zero value is usable.
type Options struct {
	Replace bool   // Commit replaces a file that exists; the caller holds its lock (Open)
	Memory  int64  // bytes for sorting; 0: a quarter of what is available, 4 GiB at most
	FS      vfs.FS // nil means vfs.OS
}

// A Builder makes a database file. Nothing is to be seen under the file's name before Commit, and
// nothing changes there if Commit fails. A Builder is for one goroutine, which ends it with Commit
// or Discard. It takes records either in order (Append) or in any order (Set, Remove, Clear, Over).
type Builder struct {
	fs     vfs.FS
	path   string
	temp   string
	opts   Options
	f      vfs.File
	out    *output
	tree   *tree
	sorter *sorter // nil: Append only
	memory *memory // what is remembered of keys; nil: nothing
	base   *File   // nil: none
	doubt  uint64  // the base's checksum − the sum of its records; not 0: see mergeWriter.base
	last   []byte  // key of the last Append
	ended  bool
}

// New begins a file at path. It removes the half-built files beside the path that dead processes
// have left.
func New(path string, o Options) (*Builder, error) {
	if o.FS == nil {
		o.FS = vfs.OS{}
	}
	if o.Memory <= 0 {
		o.Memory = defaultMemory()
	}
	real, err := target(path, o.Replace)
	if err != nil {
		return nil, err
	}
	removeLeftovers(o.FS, real)
	b := &Builder{fs: o.FS, path: real, temp: real + suffix + randomDigits(), opts: o}
	if b.f, err = b.fs.OpenFile(b.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode(real)); err != nil {
		return nil, err
	}
	if err := b.fs.Lock(b.f, 0); err != nil { // tells others that it is no leftover
		return nil, errors.Join(err, b.Discard())
	}
	pageSize := os.Getpagesize()
	b.out = newOutput(b.f, int64(2*pageSize))
	b.tree = newTree(b.out, pageSize)
	return b, nil
}

// target returns the file that path leads to.
func target(path string, replace bool) (string, error) {
	_, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return path, nil
	case err != nil:
		return "", err
	case !replace:
		return "", fmt.Errorf("%s: %w", path, os.ErrExist)
	}
	return filepath.EvalSymlinks(path)
}

// removeLeftovers removes the files of processes that are gone. The files of processes at work are
// locked.
func removeLeftovers(fs vfs.FS, path string) {
	names, err := fs.ReadDir(filepath.Dir(path))
	if err != nil {
		return // New will complain
	}
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, filepath.Base(path)+suffix)
		if !ok || len(strings.TrimSuffix(strings.TrimSuffix(rest, sortSuffix), versionSuffix)) != 8 {
			continue
		}
		name = filepath.Join(filepath.Dir(path), name)
		f, err := fs.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if fs.Lock(f, 0) == nil {
			_ = fs.Remove(name)
		}
		_ = f.Close()
	}
}

func randomDigits() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return fmt.Sprintf("%x", b)
}

// Append adds a record with a greater key than all before, its value in stored form. The error is
// ErrOrder for any other key.
func (b *Builder) Append(key, value []byte) error {
	if b.tree.count > 0 && !less(b.last, key) {
		return ErrOrder
	}
	b.last = append(b.last[:0], key...)
	return b.tree.put(key, value)
}

// Set stores a record, its value in stored form, in place of an earlier record with the key.
func (b *Builder) Set(key, value []byte) error {
	if len(key) > filestore.MaxKeySize {
		return fmt.Errorf("a key of %d bytes is longer than the file format can hold, %d", len(key), filestore.MaxKeySize)
	}
	return b.sorted().add(key, value, false)
}

// Remove removes the record with a key, if there is such a record.
func (b *Builder) Remove(key []byte) error { return b.sorted().add(key, nil, true) }

// Clear removes all records, including those of Over.
func (b *Builder) Clear() error {
	if b.memory != nil {
		if err := b.memory.clear(); err != nil {
			return err
		}
	}
	return b.sorted().clear()
}

// Over puts the records of a file below everything that is set or removed, whether before or after
// the call. Clear hides them.
func (b *Builder) Over(f *File) {
	b.base = f
	b.sorted()
}

func (b *Builder) sorted() *sorter {
	if b.sorter == nil {
		b.sorter = newSorter(b.fs, b.temp+sortSuffix, b.opts.Memory)
	}
	return b.sorter
}

// Commit completes the file with a description, to which it adds the number, the size and the
// checksum of the records, and gives the file its name. Whatever happens, the name stands for the
// old file or for the new one, whole.
func (b *Builder) Commit(m filestore.Meta) (err error) {
	defer func() { err = errors.Join(err, b.Discard()) }()
	if b.sorter != nil {
		if err := b.merge(); err != nil {
			return err
		}
	}
	m.Count, m.Bytes = b.tree.count, b.tree.bytes
	m.MergeRun, m.MergedTo = 0, nil // the new file has no runs
	if m.Summed, m.Sum = b.summed(), 0; m.Summed {
		m.Sum = b.tree.sum + b.doubt
	}
	if err := b.complete(m); err != nil {
		return fmt.Errorf("write %s: %w", b.temp, err)
	}
	return b.rename()
}

// Write writes a new file with the records that records puts, in ascending order, their values in
// stored form.
func Write(path string, m filestore.Meta, records func(put func(key, value []byte) error) error) error {
	b, err := New(path, Options{})
	if err != nil {
		return err
	}
	if err := records(b.Append); err != nil {
		return errors.Join(err, b.Discard())
	}
	return b.Commit(m)
}

// complete writes the rest of the file, and makes the file survive a power cut.
func (b *Builder) complete(m filestore.Meta) error {
	root, err := b.tree.finish()
	if err != nil {
		return err
	}
	versions, err := b.versions(&m)
	if err != nil {
		return err
	}
	description, err := filestore.EncodeMeta(m)
	if err != nil {
		return err
	}
	top, err := b.tree.buckets(root, versions, description)
	if err == nil {
		err = b.out.close()
	}
	if err == nil {
		_, err = b.f.WriteAt(b.tree.metaPages(top), 0)
	}
	if err != nil {
		return err
	}
	return b.f.Sync()
}

func (b *Builder) rename() error {
	if b.opts.Replace {
		keepOwner(b.path, b.temp)
	} else if _, err := os.Lstat(b.path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w", b.path, os.ErrExist)
	}
	if err := b.fs.Rename(b.temp, b.path); err != nil {
		return err
	}
	b.ended = true
	return errors.Join(b.fs.SyncDir(filepath.Dir(b.path)), b.release())
}

// Discard gives the file up. After Commit it does nothing.
func (b *Builder) Discard() error {
	if b.ended {
		return nil
	}
	b.ended = true
	err := b.release()
	return errors.Join(err, b.fs.Remove(b.temp))
}

// release ends the goroutines and closes the files.
func (b *Builder) release() error {
	var err error
	if b.sorter != nil {
		err = b.sorter.close()
	}
	if b.memory != nil {
		err = errors.Join(err, b.memory.sorter.close())
	}
	if b.out != nil {
		_ = b.out.close() // a failed write has been returned before, or is of no interest any more
	}
	return errors.Join(err, b.f.Close())
}

// summed reports whether the new file gets a checksum of its records. It gets none when it takes
// over records of a base that has no checksum: their sum would make damage in the base look sound.
func (b *Builder) summed() bool { return b.base == nil || b.sorter.cleared || b.base.desc.Summed }

// Sum returns the checksum of the records in the file, after Commit.
func (b *Builder) Sum() uint64 { return b.tree.sum }

// Count returns the number of records in the file, after Commit.
func (b *Builder) Count() int64 { return b.tree.count }

const (
	leastMemory = 64 << 20
	mostMemory  = 4 << 30
	memoryShare = 4 // a quarter of the available memory
)

// defaultMemory returns how much memory sorting may take. What does not fit is written and read
// once more.
func defaultMemory() int64 {
	available := int64(mostMemory)
	if n, ok := availableMemory(); ok {
		available = n
	}
	for _, limit := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(limit)
		if n, perr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && perr == nil {
			available = min(available, n)
		}
	}
	return max(leastMemory, min(available/memoryShare, mostMemory))
}

// availableMemory returns how much memory the system could give without swapping.
func availableMemory() (int64, bool) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "MemAvailable:" {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		return n << 10, err == nil
	}
	return 0, false
}
