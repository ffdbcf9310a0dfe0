package ulog

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

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
func (l *Log) RemoveFiles(upTo Stamp) error {
	done, err := l.Trim(upTo, false)
	done.tell(l)
	return err
}

// ReclaimFiles is RemoveFiles for a disk that is full: weak holds do not count.
func (l *Log) ReclaimFiles(upTo Stamp) error {
	done, err := l.Trim(upTo, true)
	done.tell(l)
	return err
}

// Trimmed says what a removal has done.
type Trimmed struct {
	Files int   // that were removed
	Bytes int64 // of these

	Kept      int // files that were to be removed, and that a holder needs
	KeptBytes int64
	KeptLast  Stamp // the newest stamp in the kept files

	holders []*Hold // who needs the kept files
}

// KeptFor names the holders of the kept files.
func (t *Trimmed) KeptFor() string {
	names := make([]string, len(t.holders))
	for i, h := range t.holders {
		names[i] = h.What
	}
	return strings.Join(names, ", ")
}

// tell says in the log what was kept, and for whom.
func (t *Trimmed) tell(l *Log) {
	if t.Kept == 0 {
		return
	}
	names := make([]string, len(t.holders))
	for i, h := range t.holders {
		names[i] = fmt.Sprintf("%s (from ts=%d)", h.What, h.From())
	}
	l.logger.Info(fmt.Sprintf("%d files of the update log %s (%d bytes, up to ts=%d) are kept, because they are needed for %s",
		t.Kept, l.dir, t.KeptBytes, t.KeptLast, strings.Join(names, ", ")))
}

// Removable returns the newest stamp in the files that RemoveFiles would remove if there were no
// holds; 0 when there are none. Holders must have come up to this stamp before a removal can be
// complete.
func (l *Log) Removable(upTo Stamp) (Stamp, error) {
	l.holds.removing.Lock()
	defer l.holds.removing.Unlock()
	old, err := l.older(l.retain(false).newest)
	newest := Stamp(0)
	for _, f := range old {
		if f.Last <= upTo {
			newest = max(newest, f.Last)
		}
	}
	return newest, err
}

// Trim is RemoveFiles without the line in the log, or ReclaimFiles where the disk is full.
func (l *Log) Trim(upTo Stamp, full bool) (Trimmed, error) {
	l.holds.removing.Lock()
	defer l.holds.removing.Unlock()
	l.holds.releaseGone()
	r := l.retain(full)
	var done Trimmed
	old, err := l.older(r.newest)
	if err != nil {
		return done, err
	}
	r.weigh(old)
	gone := Stamp(0)
	for _, f := range old {
		switch {
		case f.Last > upTo:
			continue
		case f.Last > r.floor:
			done.Kept++
			done.KeptBytes += f.Size
			done.KeptLast = max(done.KeptLast, f.Last)
			continue
		}
		if rerr := l.fs.Remove(f.Path); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
			err = &RemoveError{f.Path, rerr}
			break
		}
		done.Files++
		done.Bytes += f.Size
		gone = max(gone, f.Last)
	}
	done.holders = r.needing(done.KeptLast)
	l.removed.Add(int64(done.Files))
	l.tellGivenUp(r.ignored, gone)
	if done.Files > 0 {
		err = errors.Join(err, l.fs.SyncDir(l.dir))
	}
	return done, err
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
