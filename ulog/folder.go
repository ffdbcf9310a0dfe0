package ulog

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gotycoon/internal/vfs"
)

// A folder is the directory of a log that is open for writing.
type folder struct {
	dir    string
	opts   Options
	fs     vfs.FS
	logger *slog.Logger
}

// identityName is the file that holds the identity of a log: 32 hexadecimal digits and a line feed.
// The original lists and removes only files that begin with the byte A0, so it leaves this file
// alone.
const identityName = "gotycoon.id"

// used reports whether a directory has been a log of ours: the identity is written when the first
// segment is on the disk.
func used(fs vfs.FS, dir string) (bool, error) {
	_, err := fs.Stat(filepath.Join(dir, identityName))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Identity returns the identity of the log in a directory, without opening it. The error is
// os.ErrNotExist for a directory that no Log has opened yet.
func Identity(fs vfs.FS, dir string) (id [16]byte, err error) {
	name := filepath.Join(dir, identityName)
	f, err := fs.OpenFile(name, readOnly, 0)
	if err != nil {
		return id, err
	}
	defer f.Close()
	var text [2*len(id) + 1]byte
	if _, err = f.ReadAt(text[:], 0); err == nil {
		_, err = hex.Decode(id[:], []byte(strings.TrimSuffix(string(text[:]), "\n")))
	}
	if err != nil {
		return id, fmt.Errorf("read log identity %s: %w", name, err)
	}
	return id, nil
}

// newIdentity returns a random identity.
func newIdentity() (id [16]byte, err error) {
	_, err = rand.Read(id[:])
	return id, err
}

func writeIdentity(fs vfs.FS, dir string, id [16]byte) error {
	return vfs.WriteFileAtomic(fs, filepath.Join(dir, identityName), fmt.Appendf(nil, "%x\n", id))
}

// RemoveAll removes a log that nobody has open, with its directory. The identity goes first: if a
// crash left the identity and took segments, the log would seem to have lost its updates.
func RemoveAll(fs vfs.FS, dir string) error {
	err := fs.Remove(filepath.Join(dir, identityName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err == nil {
		err = fs.SyncDir(dir)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return vfs.RemoveDir(fs, dir)
}

const lockWait = 10 * time.Second

// errNewest says that another segment became the newest while the lock of this one was waited for.
var errNewest = errors.New("a newer segment exists")

// lock locks a segment as the original does, too. The holder it waited for may have begun another
// segment meanwhile; then the error is errNewest.
func (d *folder) lock(f vfs.File, n uint64) error {
	err := d.fs.Lock(f, 0)
	if errors.Is(err, vfs.ErrLocked) && !d.opts.TryLock {
		d.logger.Warn("waiting for another process to release the update log", "dir", d.dir)
		err = d.fs.Lock(f, lockWait)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", d.segmentPath(n), err)
	}
	return d.isNewest(n)
}

// isNewest returns errNewest where segment n is not the newest any more.
func (d *folder) isNewest(n uint64) error {
	nums, err := listSegments(d.fs, d.dir)
	if err == nil && (len(nums) == 0 || nums[len(nums)-1] != n) {
		err = errNewest
	}
	return err
}

// makeDir creates the directory if need be, and makes its name survive a power cut. The identity of
// a log is written later, so where it exists the directory has been made.
func (d *folder) makeDir() error {
	if _, err := d.fs.Stat(filepath.Join(d.dir, identityName)); err == nil {
		return nil
	}
	return vfs.MakeDir(d.fs, d.dir, dirPerm)
}

func (d *folder) segmentPath(n uint64) string { return filepath.Join(d.dir, segmentName(n)) }

// createSegment creates segment n and makes it survive a power cut. The segment gets its name when
// it has its header on the disk. So an empty segment always is one that has lost its updates, and
// never one that a crash has left unfinished.
func (d *folder) createSegment(n uint64, last, promised Stamp) (vfs.File, header, error) {
	path := d.segmentPath(n) + unborn
	f, err := d.fs.OpenFile(path, create, filePerm)
	if err != nil {
		return nil, header{}, err
	}
	head := header{}
	if err = d.fs.Lock(f, lockWait); err == nil {
		head, err = d.beginSegment(f, last, promised)
	}
	if err == nil {
		err = d.nameSegment(path, n)
	}
	if err != nil {
		return nil, header{}, errors.Join(err, f.Close())
	}
	return f, head, nil
}

// nameSegment makes a file segment n, also after a power cut. The content of the file is on the
// disk.
func (d *folder) nameSegment(path string, n uint64) error {
	name := d.segmentPath(n)
	if _, err := d.fs.Stat(name); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w", name, cmp.Or(err, os.ErrExist))
	}
	if err := d.fs.Rename(path, name); err != nil {
		return err
	}
	return d.fs.SyncDir(d.dir)
}

// beginSegment gives an empty segment its header and a commit record of zero records, and syncs it.
func (d *folder) beginSegment(f vfs.File, last, promised Stamp) (header, error) {
	head := header{headerSize + commitSize, max(last, promised)}
	b := encodeHeader(head)
	b = appendCommit(b, headerSize, last, 0)
	if err := f.Truncate(0); err != nil {
		return head, err
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		return head, err
	}
	return head, f.Sync()
}

// repeatState writes the note of the segments before into a segment that has no updates yet and
// ends at the position at, syncs it, and returns the offset where the segment goes on. The note
// must be on the disk before any other group: Open looks for a note only in the newest segment, and
// other groups need not have one.
func repeatState(f vfs.File, state []byte, at tail) (int64, error) {
	b := repeated(state, at.last)
	if len(b) == 0 {
		return at.off, nil
	}
	if _, err := f.WriteAt(b, at.off); err != nil {
		return at.off, err
	}
	return at.off + int64(len(b)), f.Sync()
}

// removeUnborn removes what a process that died has left of segments that it was about to begin,
// and of values that it had written ahead.
func (d *folder) removeUnborn() error {
	names, err := d.fs.ReadDir(d.dir)
	for _, name := range names {
		base, ok := strings.CutSuffix(name, unborn)
		if _, segment := parseSegmentName(base); ok && (segment || isAhead(name)) && err == nil {
			err = d.fs.Remove(filepath.Join(d.dir, name))
		}
	}
	return err
}

// RememberedIn returns the newest note of the log in a directory, without opening the log. Other
// than Open it goes back through all segments until one of them has a note.
func RememberedIn(fs vfs.FS, dir string) (state []byte, at Stamp, err error) {
	nums, err := listSegments(fs, dir)
	for i := len(nums) - 1; i >= 0 && err == nil && state == nil; i-- {
		var n note
		n, err = segmentState(fs, filepath.Join(dir, segmentName(nums[i])))
		state, at = n.state, n.at
	}
	return state, at, err
}

// newestNote returns the note of a log that is being opened. found is the note in the newest
// segment. A process may have begun that segment and ended before it wrote the note into it
// (empty); then the segment before has the note.
func (d *folder) newestNote(found note, newest uint64, empty bool) (note, error) {
	if !empty || newest == 1 {
		return found, nil
	}
	nums, err := listSegments(d.fs, d.dir)
	i := slices.Index(nums, newest)
	if err != nil || i < 1 {
		return found, err
	}
	return segmentState(d.fs, d.segmentPath(nums[i-1]))
}
