package quota

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/internal/vfs"
)

// exporter writes the journals of quotas into files, one line per apply in their order:
//
//	JOURNAL AMOUNT [CANCELJOURNAL]
//
// A file is written under another name and then renamed, so that readers only find whole files. A
// renamed file stays as it is until the next export. The journals of the quota NAME go to
// FILE.NAME, those of the quota without a name to FILE.
//
// Its goroutine is started by newExporter and ended by close.
type exporter struct {
	file    string // empty: nothing is exported
	records *records
	fs      vfs.FS
	logger  *slog.Logger

	mu      sync.Mutex // protects due and closed
	due     []*quota
	closed  bool
	wake    chan struct{} // asks run to look at due; closed when closed is set
	stopped chan struct{}

	made map[*quota]exported // the latest export of each quota; only run uses it
}

// exported describes an export, so that it is not repeated without need: a quota that refuses one
// call after another asks for an export each time, with the same journals.
type exported struct {
	journal uint64 // the last journal number before the export
	term    uint64 // quota.term: in another term the same number may be another journal's
	size    int64  // of the file
}

// newExporter checks that the file can be written, without changing its content.
func newExporter(file string, r *records, logger *slog.Logger) (*exporter, error) {
	e := &exporter{file: file, records: r, fs: vfs.OS{}, logger: logger, wake: make(chan struct{}, 1), stopped: make(chan struct{}),
		made: map[*quota]exported{}}
	if file != "" {
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return nil, fmt.Errorf("the export file of quotas: %w", err)
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	go e.run()
	return e, nil
}

// want asks for an export of the quota. A second request before the export has begun is served by
// the same export.
func (e *exporter) want(q *quota) {
	if e.file == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return // leader.Role may call Lead while this server stops
	}
	e.due = append(e.due, q)
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *exporter) run() {
	defer close(e.stopped)
	for range e.wake {
		e.exportDue()
	}
	e.exportDue()
}

func (e *exporter) exportDue() {
	e.mu.Lock()
	due := e.due
	e.due = nil
	e.mu.Unlock()
	for _, q := range due {
		if !q.wanted.Swap(false) {
			continue
		}
		if err := e.exportChanged(q); err != nil {
			e.logger.Error("exporting the journals of a quota: " + err.Error())
		}
	}
}

// exportChanged exports a quota, unless there are no new journals and the file still has the size
// that the latest export left.
func (e *exporter) exportChanged(q *quota) error {
	now := q.exported()
	file := e.path(q.name)
	if info, err := os.Stat(file); err == nil && !q.anew.Swap(false) {
		now.size = info.Size()
		if latest, known := e.made[q]; known && latest == now {
			return nil
		}
	}
	delete(e.made, q)
	if err := e.export(q.name); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err == nil {
		now.size = info.Size()
		e.made[q] = now
	}
	return err
}

// exported returns what an export has that begins now, but for the file's size. Its journals are in
// the records.
func (q *quota) exported() exported {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.commitRound()
	return exported{journal: q.state.journal, term: q.term}
}

// close finishes the exports that are due.
func (e *exporter) close() {
	e.mu.Lock()
	e.closed = true
	close(e.wake)
	e.mu.Unlock()
	<-e.stopped
}

// path returns the export file of a quota. Clients choose names, so safeName makes them harmless.
func (e *exporter) path(name string) string {
	if name == "" {
		return e.file
	}
	return fmt.Sprintf("%s.%s", e.file, safeName(name))
}

// longestName is the longest safe name, in bytes: file systems take 255, and the name of FILE comes
// before the safe name.
const longestName = 150

// safeName writes bytes that could lead out of the directory, or that terminals take for commands,
// as %XX. A name that becomes too long is cut and ends in "%%" and a checksum. No other name has
// two percent signs in a row, since escapedName escapes percent signs too.
func safeName(name string) string {
	safe := escapedName(name)
	if len(safe) <= longestName {
		return safe
	}
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s%%%%%x", safe[:longestName/2], sum[:16])
}

// isPlain reports whether a byte stands for itself in a safe name.
func isPlain(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_'
}

func escapedName(name string) string {
	var safe bytes.Buffer
	for i := range len(name) {
		if c := name[i]; isPlain(c) || (c == '.' && i > 0) {
			safe.WriteByte(c)
		} else {
			fmt.Fprintf(&safe, "%%%02X", c)
		}
	}
	return safe.String()
}

// unfinished is the suffix of a file that is being written. No quota's file ends in it, since
// safeName escapes "~". The next export overwrites what a killed process has left.
const unfinished = "~"

// export writes the journals and renames the file when the journals and their records are durable.
func (e *exporter) export(name string) error {
	path := e.path(name)
	f, err := e.fs.OpenFile(path+unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(io.NewOffsetWriter(f, 0))
	err = errors.Join(e.records.writeJournals(w, name), w.Flush(), e.records.SyncLog(), f.Sync(), f.Close())
	if err != nil {
		return errors.Join(err, e.fs.Remove(path+unfinished))
	}
	if err := e.fs.Rename(path+unfinished, path); err != nil {
		return err
	}
	// A directory that this server may write to, but not read, cannot be synced.
	if err := e.fs.SyncDir(filepath.Dir(path)); !errors.Is(err, os.ErrPermission) {
		return err
	}
	return nil
}

// writeJournals writes a line for each apply that the state counts, see round.go.
func (r *records) writeJournals(w io.Writer, name string) error {
	state, _, err := r.state(name)
	if err != nil {
		return err
	}
	prefix := quotaKey(name, "journal\x00")
	var owed db.Pending // export syncs the log before the file gets its name
	c := r.NewCursor()
	err = c.JumpKey(&owed, prefix)
	for err == nil {
		var key, value []byte
		if key, value, _, err = c.Get(&owed, true); err != nil || !bytes.HasPrefix(key, prefix) || len(key) != len(prefix)+8 {
			break
		}
		number := binary.BigEndian.Uint64(key[len(prefix):])
		if number > state.journal {
			break
		}
		err = writeJournal(w, number, value)
	}
	if errors.Is(err, dberr.ErrNoRecord) {
		return nil
	}
	return err
}

func writeJournal(w io.Writer, number uint64, value []byte) error {
	j, apply, err := parseJournal(value)
	switch {
	case err != nil || !apply:
		return err
	case j.cancelled != 0:
		_, err = fmt.Fprintf(w, "%d %d %d\n", number, j.amount, j.cancelled)
	default:
		_, err = fmt.Fprintf(w, "%d %d\n", number, j.amount)
	}
	return err
}
