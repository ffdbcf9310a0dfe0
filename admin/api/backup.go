package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"gotycoon/db"
	"gotycoon/snapshot"
)

const (
	backupBlock   = 64 << 10
	backupTimeout = 30 * time.Second // for the client to take a block
)

var errStopped = errors.New("interrupted: the server is stopping")

// backup sends a snapshot file of a database as it is at this moment. A slow client delays nobody;
// the old values of records that change meanwhile are kept for it.
func (a *API) backup(w http.ResponseWriter, r *http.Request, s *Sources) (any, error) {
	d, err := database(r, s)
	if err != nil {
		return nil, err
	}
	compressor, known := snapshot.ParseCompressor(r.URL.Query().Get("compressor"))
	if !known {
		compressor = snapshot.Zlib
	}
	frozen, err := d.Freeze()
	if err != nil {
		return nil, err
	}
	defer frozen.Close()
	a.note(r, fmt.Sprintf("backup of database %d", d.Index()))
	attach(w, fmt.Sprintf("%s-%s.ktss", fileName(d.Name()), frozen.Stamp().Time().UTC().Format("20060102T150405Z")))
	if err := a.send(w, frozen, compressor); err != nil {
		line := fmt.Sprintf("console: backup of database %d: %v", d.Index(), err)
		if r.Context().Err() != nil && a.ctx.Err() == nil { // the client has gone, or takes nothing
			a.opts.Logger.Info(line)
		} else {
			a.opts.Logger.Error(line)
		}
		panic(http.ErrAbortHandler) // the client must not take a part for the whole
	}
	return nil, nil
}

// fileName returns a name for the backup of a database, without characters that file names may not
// have.
func fileName(name string) string {
	safe := []byte(name)
	for i, c := range safe {
		if c != '.' && c != '_' && c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			safe[i] = '_'
		}
	}
	return "backup-" + string(safe)
}

func (a *API) send(w http.ResponseWriter, frozen *db.Frozen, c snapshot.Compressor) error {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	to := &patient{w: w, control: control, ctx: a.ctx}
	// SetWriteDeadline fails only if the client has gone.
	stop := context.AfterFunc(a.ctx, func() { _ = control.SetWriteDeadline(time.Now()) })
	defer stop()
	out := bufio.NewWriterSize(to, backupBlock)
	sw, err := snapshot.NewWriter(out, snapshot.Header{Compressor: c, Stamp: frozen.Stamp(), Count: frozen.Count(), Size: frozen.Size()})
	if err != nil {
		return err
	}
	if err := frozen.Scan(sw.Add); err != nil {
		return err
	}
	if err := sw.Close(); err != nil {
		return err
	}
	return out.Flush()
}

// patient gives the client backupTimeout for each block, until ctx ends.
type patient struct {
	w       io.Writer
	control *http.ResponseController
	ctx     context.Context
}

// Write implements io.Writer.
func (p *patient) Write(b []byte) (int, error) {
	if err := p.control.SetWriteDeadline(time.Now().Add(backupTimeout)); err != nil {
		return 0, err
	}
	if p.ctx.Err() != nil {
		return 0, errStopped
	}
	return p.w.Write(b)
}
