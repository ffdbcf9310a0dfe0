package replication

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

const (
	rtsSize     = 21 // 20 digits and a line feed
	rtsLockWait = 10 * time.Second
)

// rtsFile is a replication time stamp file: the position of a follower as decimal digits for people and scripts. It is locked
// while open, since two followers must not share one, and rewritten in place.
type rtsFile struct {
	f     vfs.File
	saved ulog.Stamp // what the file says
}

// openRTS opens or creates the file of a path and rewrites what it says in the usual form.
func openRTS(fs vfs.FS, path string) (*rtsFile, error) {
	f, err := fs.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	r := &rtsFile{f: f}
	if err := fs.Lock(f, rtsLockWait); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// Without the name, after a power cut, the file would be a new one, and the follower would begin anew.
	if err := fs.SyncDir(filepath.Dir(path)); err != nil && !errors.Is(err, os.ErrPermission) {
		return nil, errors.Join(err, f.Close())
	}
	if err := r.load(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

func (r *rtsFile) load() error {
	text := make([]byte, rtsSize)
	n, err := r.f.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := r.f.Truncate(rtsSize); err != nil {
		return err
	}
	return r.save(parseRTS(text[:n]))
}

// save makes the file say at. Less than a disk sector is written, so that a power cut leaves the old or the new text.
func (r *rtsFile) save(at ulog.Stamp) error {
	if _, err := r.f.WriteAt(fmt.Appendf(nil, "%020d\n", at), 0); err != nil {
		return err
	}
	if err := r.f.Sync(); err != nil { // or it might say, after a power cut, what nobody remembers to have written
		return err
	}
	r.saved = at
	return nil
}

func (r *rtsFile) close() error { return r.f.Close() }

// parseRTS reads the digits behind blanks and a sign. Where there are none the stamp is 0.
func parseRTS(text []byte) (at ulog.Stamp) {
	i := 0
	for i < len(text) && text[i] > 0 && text[i] <= ' ' {
		i++
	}
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		i++
	}
	for ; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
		at = at*10 + ulog.Stamp(text[i]-'0')
	}
	return at
}
