package ulog

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"gotycoon/internal/vfs"
)

// FileInfo describes a file of a log.
type FileInfo struct {
	Path string // directory as given to Open, slash, name
	Size int64  // in bytes, by the header
	Last Stamp  // largest stamp, by the header
}

// Files lists the files in the directory that begin with a segment header, in the order of their
// names. As with the original the name does not matter. For the segment being written it gives what
// is written, whatever the header says.
func (l *Log) Files() ([]FileInfo, error) {
	names, err := l.fs.ReadDir(l.dir)
	if err != nil {
		return nil, fmt.Errorf("list update log: %w", err)
	}
	l.mu.Lock()
	// Read after the directory, so the headers of all older segments are final.
	current := l.written
	l.mu.Unlock()
	var files []FileInfo
	for _, name := range names {
		head := header{current.off, current.last}
		if name != segmentName(current.seg) {
			var ok bool
			if head, ok = headerAt(l.fs, l.dir, name); !ok {
				continue
			}
		}
		files = append(files, FileInfo{l.dir + "/" + name, head.size, head.last})
	}
	return files, nil
}

// Files lists the files of a log that need not be open: those in the directory that begin with a
// segment header, in the order of their names. The size and the stamp of the newest file lag while
// a process writes it.
func Files(fs vfs.FS, dir string) ([]FileInfo, error) {
	names, err := fs.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list update log: %w", err)
	}
	var files []FileInfo
	for _, name := range names {
		if head, ok := headerAt(fs, dir, name); ok {
			files = append(files, FileInfo{dir + "/" + name, head.size, head.last})
		}
	}
	return files, nil
}

// Hold keeps all segments that may have updates newer than from, until the holder moves on or
// releases them. what names the holder for people. Hold does not bring back a segment that is gone
// already: a reader that is opened afterwards reports a gap.
func (l *Log) Hold(what string, from Stamp) *Hold { return l.holds.add(what, from, false) }

// HoldWeakly is Hold for a holder that can do without the updates when the disk is full, see
// ReclaimFiles.
func (l *Log) HoldWeakly(what string, from Stamp) *Hold { return l.holds.add(what, from, true) }

// Holds lists who holds segments, the holder that is furthest behind first. files is the result of
// Files, for the sizes.
func (l *Log) Holds(files []FileInfo) []HoldInfo {
	l.mu.Lock()
	current := l.dir + "/" + segmentName(l.written.seg)
	all := l.holds.live()
	l.mu.Unlock()
	infos := make([]HoldInfo, len(all))
	for i, h := range all {
		infos[i] = HoldInfo{What: h.what, From: h.From(), Weak: h.weak}
		for _, f := range files {
			if f.Path != current && f.Last > infos[i].From {
				infos[i].Bytes += f.Size
			}
		}
	}
	return infos
}

// RemoveFiles removes the files that Files lists and that hold nothing newer than upTo, as far as
// no Hold needs them; never the last file in the order of names, and never the segment being
// written. Readers that have a removed file open go on reading it. A line in the log says what was
// kept for whom.
//
// Segments that are too damaged to be listed go together with the next one that is not.
//
// The oldest file goes first, so that a process that dies in between leaves a log without a hole. A
// power cut may bring any of the removed files back; that is no hole for a reader that needs
// nothing of them, see Reader.join.
func (l *Log) RemoveFiles(upTo Stamp) error { return l.remove(upTo, true) }

// ReclaimFiles is RemoveFiles for a disk that is full: weak holds do not count.
func (l *Log) ReclaimFiles(upTo Stamp) error { return l.remove(upTo, false) }

// Removable returns the newest stamp in the files that RemoveFiles would remove if there were no
// holds; 0 when there are none. Holders must have come up to this stamp before a removal can be
// complete.
func (l *Log) Removable(upTo Stamp) (Stamp, error) {
	l.holds.removing.Lock()
	defer l.holds.removing.Unlock()
	old, err := l.older(l.retain(true).newest)
	newest := Stamp(0)
	for _, f := range old {
		if f.Last <= upTo {
			newest = max(newest, f.Last)
		}
	}
	return newest, err
}

func (l *Log) remove(upTo Stamp, all bool) error {
	l.holds.removing.Lock()
	defer l.holds.removing.Unlock()
	l.holds.releaseGone()
	r := l.retain(all)
	old, err := l.older(r.newest)
	if err != nil {
		return err
	}
	kept, removed := FileInfo{}, false
	files := 0
	for _, f := range old {
		switch {
		case f.Last > upTo:
			continue
		case f.Last > r.floor:
			files++
			kept.Size += f.Size
			kept.Last = max(kept.Last, f.Last)
			continue
		}
		if rerr := l.fs.Remove(f.Path); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
			err = &RemoveError{f.Path, rerr}
			break
		}
		removed = true
	}
	if files > 0 {
		l.logger.Info(fmt.Sprintf("%d files of the update log %s (%d bytes, up to ts=%d) are kept, because they are needed for %s",
			files, l.dir, kept.Size, kept.Last, r.whose(kept.Last)))
	}
	if removed {
		err = errors.Join(err, l.fs.SyncDir(l.dir))
	}
	return err
}

// RemoveError says which file of a log could not be removed.
type RemoveError struct {
	Path string
	Err  error
}

// Error names the file and the reason.
func (e *RemoveError) Error() string {
	return "remove update log file " + e.Path + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *RemoveError) Unwrap() error { return e.Err }

// older returns the files that may be removed when nobody needs them, the oldest first. The caller
// holds holds.removing.
func (l *Log) older(newest uint64) ([]FileInfo, error) {
	names, err := l.fs.ReadDir(l.dir)
	if err != nil {
		return nil, fmt.Errorf("list update log: %w", err)
	}
	var files []FileInfo
	const unknown = Stamp(math.MaxUint64)
	// Last stamp of the next undamaged segment: segments before it hold nothing newer.
	bound := unknown
	last := true
	for i := len(names) - 1; i >= 0; i-- {
		n, segment := parseSegmentName(names[i])
		if segment && n >= newest {
			last = false
			continue
		}
		head, ok := headerAt(l.fs, l.dir, names[i])
		switch {
		case ok && last: // the last name always stays
			last = false
			if segment {
				bound = head.last
			}
			continue
		case ok && segment:
			bound = head.last
		case !ok && (!segment || bound == unknown):
			continue
		case !ok:
			head.last = bound
		}
		files = append(files, FileInfo{l.dir + "/" + names[i], head.size, head.last})
	}
	slices.Reverse(files)
	return files, nil
}

// A retention is the state of the log on which one removal decides: the newest segment and the
// holds at one moment.
type retention struct {
	newest  uint64 // number of the segment being written: it and those above it stay
	floor   Stamp  // updates newer than this are needed
	holders []holder
}

// A holder is a hold as it was at the moment of its retention.
type holder struct {
	what string
	from Stamp
}

// retain returns what a removal has to obey. With all, weak holds count. The caller holds
// holds.removing.
func (l *Log) retain(all bool) retention {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := retention{newest: l.written.seg, floor: maxStamp}
	for _, h := range l.holds.live() {
		if h.weak && !all {
			continue
		}
		at := holder{h.what, h.From()}
		r.holders = append(r.holders, at)
		r.floor = min(r.floor, at.from)
	}
	return r
}

// whose names the holders that still need updates from files whose newest stamp is last.
func (r *retention) whose(last Stamp) string {
	var names []string
	for _, h := range r.holders {
		if h.from < last {
			names = append(names, fmt.Sprintf("%s (from ts=%d)", h.what, h.from))
		}
	}
	return strings.Join(names, ", ")
}
