package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"gotycoon/client"
	"gotycoon/internal/vfs"
	"gotycoon/snapshot"
	"gotycoon/tools/show"
	"gotycoon/ulog"
)

// leastLimit is the lowest limit in bytes per second. The server ends the connection of a client
// that accepts nothing for some time, so a slower backup would not end well.
const leastLimit = 64 << 10

// standardOutput is the file name that stands for the standard output.
const standardOutput = "-"

// backupJob is one run of backup.
type backupJob struct {
	*call
	fs       vfs.FS
	path     string
	limit    int64
	compress snapshot.Compressor

	info     client.CopyInfo
	target   backupTarget
	progress show.Progress
	done     int64 // records
	shown    int64 // bytes that the progress display has been told of
}

// backupTarget is the destination of a backup. Before commit nothing changes under its name;
// discard leaves the name as it was.
type backupTarget interface {
	begin(client.CopyInfo) error
	put(key, value []byte) error
	commit() (written, error)
	discard() error
}

// backup writes a database of the server to a file. The file has the records of one moment.
func backup(ctx context.Context, c *call) error { return backupTo(ctx, c, vfs.OS{}) }

func backupTo(ctx context.Context, c *call, fs vfs.FS) error {
	j := &backupJob{call: c.withDB(), fs: fs}
	limit := c.flags.Bytes("limit", 0, "receive at most this `size` a second, 20m for example (default: no limit)")
	compress := c.flags.String("compress", "none", "how a snapshot is compressed: none, zlib, lzo, lzma, zstd or s2; the last two only this server can read")
	if err := c.parse(1, 1); err != nil {
		return err
	}
	if err := j.configure(*limit, *compress); err != nil {
		return err
	}
	db, err := c.openBinary(ctx)
	if err != nil {
		return err
	}
	return c.failed("DB::copy", j.run(ctx, db))
}

// configure checks the options and chooses the target by the file's name.
func (j *backupJob) configure(limit int64, compress string) error {
	var known bool
	j.path, j.limit = j.args[0], limit
	if j.compress, known = snapshot.ParseCompressor(compress); !known {
		return usageError("-compress: must be none, zlib, lzo, lzma, zstd or s2")
	}
	if j.flags.Changed("limit") && limit < leastLimit {
		return usageError("-limit: must be at least 64k")
	}
	switch {
	case j.path == standardOutput:
		j.target = &streamTarget{out: j.out, compress: j.compress}
	case strings.HasSuffix(j.path, ".ktss"):
		j.target = &snapshotTarget{fs: j.fs, path: j.path, compress: j.compress}
	case !isDatabaseFile(j.path):
		return usageError("the name must end in .ktss for a snapshot, or in .kct, .kch, .kcd or .kcf for a database file; - is the standard output")
	case j.flags.Changed("compress"):
		return usageError("-compress: a database file is not compressed")
	default:
		j.target = &databaseTarget{fs: j.fs, path: j.path}
	}
	return nil
}

func isDatabaseFile(path string) bool {
	switch filepath.Ext(path) {
	case ".kct", ".kch", ".kcd", ".kcf":
		return true
	}
	return false
}

// run makes the backup and prints its description.
func (j *backupJob) run(ctx context.Context, db *client.DB) error {
	o := client.CopyOptions{Limit: j.limit, Begin: j.begin, Visit: j.visit}
	if t, ok := j.target.(*databaseTarget); ok {
		o.Version = func(key, value []byte, v client.CopyVersion) error {
			if err := t.remember(key, v); err != nil || v.Removed {
				return err
			}
			return j.visit(key, value)
		}
	}
	err := db.Copy(ctx, o)
	if j.progress != nil {
		j.progress.End()
	}
	if err != nil {
		return errors.Join(err, j.target.discard())
	}
	w, err := j.target.commit()
	if err != nil {
		return errors.Join(err, j.target.discard())
	}
	return j.tell(w)
}

// begin opens the destination.
func (j *backupJob) begin(info client.CopyInfo) error {
	j.info = info
	j.progress = show.NewProgress(io.Discard, j.stderr, j.stderr, show.ProgressOptions{Items: "records", Size: max(info.Size, 1)})
	return j.target.begin(info)
}

// visit stores one record. The progress display counts bytes of the database: each record moves it
// by the same share of the database's size.
func (j *backupJob) visit(key, value []byte) error {
	j.done++
	share := float64(j.done) / float64(max(j.info.Count, 1))
	upTo := int64(share * float64(j.info.Size))
	j.progress.Done(1, int(upTo-j.shown))
	j.shown = upTo
	return j.target.put(key, value)
}

// tell prints the description of the backup, a line for each fact.
func (j *backupJob) tell(w written) error {
	out := io.Writer(j.out)
	if j.path == standardOutput {
		out = j.stderr
	}
	at := ulog.Stamp(j.info.TS)
	_, err := fmt.Fprintf(out, "ts: %d\ntime: %s\ncount: %d\nsize: %d\nsha256: %x\n",
		at, at.Time().UTC().Format(time.RFC3339Nano), j.done, w.size, w.digest)
	return err
}
