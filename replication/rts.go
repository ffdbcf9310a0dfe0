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

	// saveEvery is how far the RTS file may lag behind while updates come, idleEvery while none
	// come.
	saveEvery = time.Second
	idleEvery = 10 * time.Second
)

// rtsFile is a replication time stamp file: a follower's position as decimal digits, for people and
// scripts. The file is locked while it is open, because two followers must not share one, and is
// rewritten in place.
type rtsFile struct {
	f     vfs.File
	saved ulog.Stamp // what the file says
}

// openRTS opens or creates the file at a path, and rewrites its text in the usual form.
func openRTS(fs vfs.FS, path string) (*rtsFile, error) {
	f, err := fs.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	r := &rtsFile{f: f}
	if err := fs.Lock(f, rtsLockWait); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// Without this sync a power cut could remove the name of a new file: the next start would
	// create another file with the position 0, and the follower would begin anew.
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

// save writes at into the file and syncs the file. The text is smaller than a disk sector, so that
// a power cut leaves the old or the new text.
func (r *rtsFile) save(at ulog.Stamp) error {
	if _, err := r.f.WriteAt(fmt.Appendf(nil, "%020d\n", at), 0); err != nil {
		return err
	}
	// Otherwise a power cut could bring back a text that no record knows any more.
	if err := r.f.Sync(); err != nil {
		return err
	}
	r.saved = at
	return nil
}

func (r *rtsFile) close() error { return r.f.Close() }

// parseRTS reads the digits behind blanks and a sign. Without digits the stamp is 0.
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
