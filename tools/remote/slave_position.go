package remote

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"gotycoon/internal/vfs"
)

// position is how far a feed is: every update up to the stamp has been printed, as far as the
// feed's options ask for it.
type position struct {
	stamp uint64 // of an update, never of a heartbeat: see feed
	logID string // identity of the log that the stamp belongs to; empty: not known

	// file is the number of the log file where the updates after the stamp begin, of a server that
	// does not tell the log's identity; 0: not known. While this file is there nothing is missing.
	file uint64
}

// positionFile keeps a position across restarts. Its content is the stamp and the log's identity:
//
//	stamp (20 decimal digits) | line feed | log (32 hexadecimal digits, or none) | line feed
//
// The first line is the content of a replication time stamp file of the original. The file is
// replaced as a whole.
type positionFile struct {
	fs    vfs.FS
	path  string // empty: the position is not kept
	saved position
	last  time.Time // time of the latest save
}

// saveEvery is the shortest time between two saves. After a crash the updates of this time are
// printed again.
const saveEvery = 200 * time.Millisecond

// load reads the position; ok is false if there is no file.
func (p *positionFile) load() (pos position, ok bool, err error) {
	if p.path == "" {
		return pos, false, nil
	}
	text, err := os.ReadFile(p.path)
	if errors.Is(err, os.ErrNotExist) {
		return pos, false, nil
	}
	if err != nil {
		return pos, false, err
	}
	lines := strings.Split(string(text), "\n")
	pos.stamp, err = strconv.ParseUint(strings.TrimSpace(lines[0]), 10, 63)
	if err != nil {
		return pos, false, fmt.Errorf("%s: the first line is no time stamp: correct it, or remove the file to begin with -ts", p.path)
	}
	if len(lines) > 1 {
		pos.logID = strings.TrimSpace(lines[1])
	}
	p.saved = pos
	return pos, true, nil
}

// due reports whether it is time to save a position.
func (p *positionFile) due(pos position) bool {
	return p.path != "" && pos != p.saved && time.Since(p.last) >= saveEvery
}

// save replaces the file.
func (p *positionFile) save(pos position) error {
	if p.path == "" || pos == p.saved {
		return nil
	}
	if err := vfs.WriteFileAtomic(p.fs, p.path, fmt.Appendf(nil, "%020d\n%s\n", pos.stamp, pos.logID)); err != nil {
		return fmt.Errorf("save the position: %w", err)
	}
	p.saved, p.last = pos, time.Now()
	return nil
}
