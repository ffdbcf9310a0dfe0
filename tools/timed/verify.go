package timed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"gotycoon/db/filestore"
	"gotycoon/db/rebuild"
	"gotycoon/internal/vfs"
	"gotycoon/tools/show"
	"gotycoon/ulog"
)

// errDamage is the error of a verification that has found damage.
var errDamage = errors.New("the database is damaged")

// verification is one run of verify.
type verification struct {
	*call
	fs       vfs.FS
	path     string
	meta     filestore.Meta
	findings int
	facts    show.Object // with -json
}

// verify reads every page of a database file and every record of its log.
func verify(ctx context.Context, c *call) error {
	if err := c.withJSON().parse(1, 2); err != nil {
		return err
	}
	path, err := c.filePath(c.args[0])
	if err != nil {
		return err
	}
	if len(c.args) > 1 { // a directory that is not there would look like a log without records
		if _, err := os.ReadDir(c.args[1]); err != nil {
			return fmt.Errorf("the update log: %w", err)
		}
	}
	v := &verification{call: c, fs: vfs.OS{}, path: path, facts: show.Object{}}
	if err := v.file(); err != nil {
		return c.openFailed(inUse(err))
	}
	if err := v.log(ctx); err != nil {
		return err
	}
	return v.verdict()
}

func (v *verification) verdict() error {
	v.facts["findings"] = v.findings
	if v.json {
		if err := show.JSON(v.out, v.facts); err != nil {
			return err
		}
	}
	if v.findings > 0 {
		v.fact("findings", v.findings)
		return errDamage
	}
	if !v.json {
		fmt.Fprintf(v.out, "sound\n") // Flush returns the error
	}
	return nil
}

// fact prints a fact about the file or its log.
func (v *verification) fact(name string, value any) {
	v.facts[name] = value
	if !v.json {
		fmt.Fprintf(v.out, "%s: %v\n", name, value) // Flush returns the error
	}
}

// found prints a finding, and counts it.
func (v *verification) found(where string, err error) {
	v.findings++
	fmt.Fprintf(v.stderr, "%s: %s: %v\n", program, where, err)
}

func (v *verification) file() error {
	done := v.quietProgress("pages", -1)
	r, err := rebuild.Check(v.path, v.tryLock, func(pages int) { done(pages, 0) })
	done(0, 0)
	if err != nil {
		return err
	}
	v.meta = r.Meta
	v.fact("file", v.path)
	v.fact("pages", fmt.Sprintf("%d (leaves %d, branches %d, free %d)", r.Pages, r.Leaves, r.Branches, r.Free))
	v.fact("records", r.Records)
	v.fact("bytes", r.Bytes)
	if r.Runs+r.Unfinished > 0 {
		v.fact("runs", runsFact(r))
	}
	if r.Meta.Format != 0 {
		v.fact("identity", r.Meta.ID.String())
		v.fact("stamp", moment(r.Meta.Stamp))
		v.fact("closed", yes(r.Meta.Clean))
		v.fact("checksum", sumFact(r))
	}
	for i := range r.Damage {
		v.found(v.path, &r.Damage[i])
	}
	if more := r.Found - len(r.Damage); more > 0 {
		v.findings += more
		fmt.Fprintf(v.stderr, "%s: %s: and %d more\n", program, v.path, more)
	}
	return nil
}

// runsFact says what the file has above its tree.
func runsFact(r *rebuild.Report) string {
	text := fmt.Sprintf("%d (updates %d, unfinished %d)", r.Runs, r.Entries, r.Unfinished)
	if r.Meta.MergeRun > 0 {
		text += fmt.Sprintf(", those up to %d are being merged into the records below", r.Meta.MergeRun)
	}
	return text
}

// sumFact compares the checksum in the file with the checksum of its records.
func sumFact(r *rebuild.Report) string {
	switch {
	case !r.Meta.Summed:
		return "none: the contents of the records cannot be verified; \"" + program + " compact\" adds one"
	case r.Tree.Sum != r.Meta.Sum:
		return "differs"
	}
	return "matches"
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// log reads the log that was named or that the file belongs to, and checks whether file and log fit
// together.
func (v *verification) log(ctx context.Context) error {
	dir := v.logDir()
	if dir == "" {
		if v.meta.Format != 0 && (!v.meta.Clean || v.meta.Merging != nil) {
			v.found(v.path, fmt.Errorf("was not closed, and its update log, which was %s, is not there: name its directory", v.meta.LogDir))
		}
		return nil
	}
	l, err := v.readLog(ctx, dir)
	if err != nil {
		return err
	}
	v.fact("log", dir)
	v.fact("updates", l.updates)
	v.fact("last update", moment(l.last))
	if v.meta.Format == 0 {
		return nil
	}
	if !v.owns(dir) {
		v.fact("file and log", "do not belong together")
		if !v.meta.Clean {
			v.found(v.path, fmt.Errorf("was not closed, and its newest updates are in another log, which was %s", v.meta.LogDir))
		}
		return nil
	}
	if l.reachesBack {
		v.fact("updates that the file lacks", l.lacking)
	} else {
		v.found(dir, fmt.Errorf("does not reach back to where the file ends, the time stamp %d: files of it were removed", v.meta.Stamp))
	}
	return nil
}

// logDir returns the directory of the log, "" if there is none.
func (v *verification) logDir() string {
	if len(v.args) > 1 {
		return v.args[1]
	}
	if v.ulog != "" {
		return v.ulog
	}
	for _, dir := range []string{v.path + privateSuffix, v.meta.LogDir} {
		if dir != "" && v.owns(dir) {
			return dir
		}
	}
	return ""
}

// owns reports whether the file belongs to the log in a directory.
func (v *verification) owns(dir string) bool {
	id, err := ulog.Identity(v.fs, dir)
	return err == nil && v.meta.LogID == filestore.ID(id) && id != [16]byte{}
}

// logFacts describe a log.
type logFacts struct {
	updates     int64
	last        ulog.Stamp
	lacking     int64 // number of updates that the file lacks
	reachesBack bool  // the log has the first update that the file lacks
}

// readLog reads the whole log and verifies its checksums.
func (v *verification) readLog(ctx context.Context, dir string) (l logFacts, err error) {
	r, err := ulog.OpenReader(v.fs, dir, 0, ulog.ReaderOptions{Report: func(err error) { v.found(dir, err) }})
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	done := v.quietProgress("updates", -1)
	defer done(0, 0)
	for {
		e, err := r.Next()
		if damage, ok := errors.AsType[*ulog.DamageError](err); ok {
			v.found(dir, damage)
			r.SkipDamage()
			continue
		}
		if gap, ok := errors.AsType[*ulog.GapError](err); ok {
			if !gap.Trimmed() { // reachesBack judges the beginning of the log
				v.found(dir, gap)
			}
			r.SkipGap()
			continue
		}
		if errors.Is(err, io.EOF) {
			l.reachesBack, err = v.reachesBack(dir)
			return l, err
		}
		if err != nil {
			return l, err
		}
		v.update(dir, e, &l)
		done(1, len(e.Message))
		if l.updates%lookEvery == 0 && ctx.Err() != nil {
			return l, ctx.Err()
		}
	}
}

func (v *verification) update(dir string, e ulog.Entry, l *logFacts) {
	u, err := ulog.ParseMessage(e.Message)
	switch {
	case err != nil:
		v.found(dir, fmt.Errorf("update with the time stamp %d: %w", e.Stamp, err))
	case e.Stamp <= l.last:
		v.found(dir, fmt.Errorf("the time stamp %d comes after %d", e.Stamp, l.last))
	case u.DBID == v.meta.DBID && e.Stamp > v.meta.Stamp:
		l.lacking++
	}
	l.updates++
	l.last = max(l.last, e.Stamp)
}

// reachesBack reports whether the log has the first updates that the file lacks. Later gaps are
// found when the log is read.
func (v *verification) reachesBack(dir string) (bool, error) {
	r, err := ulog.OpenReader(v.fs, dir, v.meta.Stamp, ulog.ReaderOptions{})
	if err != nil {
		return false, err
	}
	return r.Lost() == nil, r.Close()
}
