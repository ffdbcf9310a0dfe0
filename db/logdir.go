package db

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"sync"

	"gotycoon/db/dberr"
	"gotycoon/db/filestore"
	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// logDir is an update log with the checkpoints of the databases that use it. It is prepared first,
// and begun when the start is decided; until then only ID, Dir, Last, ledger and Close may be used.
type logDir struct {
	*ulog.Log // nil until it is begun
	ready     *ulog.Prepared
	fs        vfs.FS

	mu      sync.Mutex // guards ledger and its file
	ledger  map[string]filestore.LedgerEntry
	private bool
}

// begin makes the log ready for updates.
func (l *logDir) begin() error {
	log, err := l.ready.Begin()
	if err != nil {
		return &dberr.LogError{Dir: l.Dir(), Err: err}
	}
	l.Log = log
	return nil
}

// ID returns the identity of the log.
func (l *logDir) ID() [16]byte {
	if l.Log != nil {
		return l.Log.ID()
	}
	return l.ready.ID()
}

// Dir returns the log's directory.
func (l *logDir) Dir() string { return l.ready.Dir() }

// Last returns the newest stamp in the log.
func (l *logDir) Last() ulog.Stamp {
	if l.Log != nil {
		return l.Log.Last()
	}
	return l.ready.Last()
}

// Close closes the log; a log that was not begun stays as it is.
func (l *logDir) Close() error {
	if l.Log != nil {
		return l.Log.Close()
	}
	return l.ready.Close()
}

// readLedger reads the ledger of a log's directory. A directory without a ledger has no entries.
func readLedger(fs vfs.FS, dir string) (map[string]filestore.LedgerEntry, error) {
	ledger, err := filestore.ReadLedger(fs, dir)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filestore.LedgerName, err)
	}
	return ledger, nil
}

// record notes a checkpoint of a database. The checkpoint is complete before, so an entry never
// leads its file.
func (l *logDir) record(path string, m filestore.Meta) error {
	return l.note(m.ID.String(), filestore.LedgerEntry{Path: path, Epoch: m.Epoch, Stamp: m.Stamp, DBID: m.DBID, Open: !m.Clean})
}

// note puts an entry into the ledger and writes the ledger's file.
func (l *logDir) note(name string, e filestore.LedgerEntry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ledger[name] = e
	return filestore.WriteLedger(l.fs, l.Dir(), l.ledger)
}

// open returns the entries of files that nobody has closed since.
func (l *logDir) open() map[string]filestore.LedgerEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := maps.Clone(l.ledger)
	maps.DeleteFunc(open, func(_ string, e filestore.LedgerEntry) bool { return !e.Open })
	return open
}

// restored reports whether a file is older than its last checkpoint, so somebody has put a copy in
// its place.
func (l *logDir) restored(m filestore.Meta) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.ledger[m.ID.String()]
	return ok && (m.Epoch < e.Epoch || m.Epoch == e.Epoch && m.Stamp < e.Stamp)
}

// closed reports whether a file is as its last process has closed it: the log has nothing more for
// it.
func (l *logDir) closed(m filestore.Meta) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.ledger[m.ID.String()]
	return ok && m.Clean && m.Epoch == e.Epoch && m.Stamp == e.Stamp
}

// place is the log's directory as files note it: absolute, so that tools find it wherever they run.
func (l *logDir) place() string {
	if dir, err := filepath.Abs(l.Dir()); err == nil {
		return dir
	}
	return l.Dir()
}

// remembers returns the position in a log, nil where there is none.
func (l *logDir) remembers() []byte {
	if state, _ := l.Remembered(); known(state) {
		return state
	}
	return nil
}

// forgotten is the position in a log that has forgotten: the files know better. No caller of
// Remember has this value.
var forgotten = []byte{0}

// known reports whether a log has a position.
func known(state []byte) bool { return len(state) > 0 && !bytes.Equal(state, forgotten) }
