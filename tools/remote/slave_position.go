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

// position is how far a feed is: every update up to the stamp that is for it has been printed.
type position struct {
	stamp uint64 // of an update, never of a heartbeat: after a restart with its clock set back a server may go below those
	logID string // of the log that the stamp belongs to; empty: not known
}

// positionFile keeps a position over restarts. Its content:
//
//	stamp, 20 decimal digits | line feed | identity of the log, 32 hexadecimal digits, or nothing | line feed
//
// The first line is what a replication time stamp file of the original has. It is replaced as a whole, after what it
// covers has been given to the operating system as output.
type positionFile struct {
	fs    vfs.FS
	path  string // empty: nothing is kept
	saved position
	last  time.Time // of the save before
}

// saveEvery is the shortest time between two saves: as much is printed again after a crash.
const saveEvery = 200 * time.Millisecond

// load returns the position of the file; ok is false when there is none.
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

// due tells whether a position is to be saved now.
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
