package server

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gotycoon/db"
	"gotycoon/ulog"
)

const (
	retainEvery = time.Second      // between two looks whether the log has a new file
	retainAtAll = 10 * time.Second // between two looks for files beyond the limits, if it has none
)

// RetentionConfig says how much of the update log is kept. Files that somebody needs are kept
// whatever it says, see ulog.Hold.
type RetentionConfig struct {
	Age   time.Duration // of the newest update in a file (-ulog-keep-age); 0: however old
	Size  int64         // bytes of all files (-ulog-keep-size); 0: any number
	Count int           // number of files (-ulog-keep-count); 0: any number

	SlaveTime time.Duration // files are kept for a follower that has gone (-ulog-slave-time)
	SlaveSize int64         // bytes of files for one follower (-ulog-slave-size); 0: any number
}

// limits are the limits beyond which files are removed by themselves.
func (c *RetentionConfig) limits() ulog.Limits {
	return ulog.Limits{Age: c.Age, Size: c.Size, Count: c.Count}
}

var (
	errNegative = errors.New("-ulog-keep-age, -ulog-keep-size, -ulog-keep-count, -ulog-slave-time and -ulog-slave-size cannot be negative")
	errNoLog    = errors.New("-ulog-keep-age, -ulog-keep-size and -ulog-keep-count are about an update log: they need -ulog")
)

// check finds what is wrong with the limits of a server with or without an update log.
func (c *RetentionConfig) check(logged bool) error {
	switch {
	case c.Age < 0 || c.Size < 0 || c.Count < 0 || c.SlaveTime < 0 || c.SlaveSize < 0:
		return errNegative
	case c.limits().On() && !logged:
		return errNoLog
	}
	return nil
}

// retention removes files of the update log that are beyond the limits and that nobody needs.
//
// Each limit alone is enough: a file goes when everything in it is older than -ulog-keep-age, or
// when the log with it has more than -ulog-keep-size bytes or -ulog-keep-count files. Who needs a
// file is decided by the holds of the log and by nothing else, so a limit never loses an update
// that a restart, a follower within its bounds, or a hold of an operator needs. The disk may fill
// for that reason; then -min-free has updates refused, and the log says for whom files are kept.
type retention struct {
	catalog *db.Catalog
	limits  func() ulog.Limits
	// rare reports whether snapshots are taken only at the end of the server. Then they are taken
	// when they are all that keeps a file.
	rare func() bool
	log  logger

	seg    uint64    // the newest file at the last look
	looked time.Time // when that was
	kept   string    // for whom files beyond the limits are kept, as the log was told
	failed string    // why a removal failed, as the log was told
}

// look removes what may go. It is called by one goroutine at a time.
func (r *retention) look() {
	limits := r.limits()
	if !limits.On() && r.catalog.LogOverdue() == 0 {
		return
	}
	seg := r.catalog.Log().Segment()
	if seg == r.seg && time.Since(r.looked) < retainAtAll {
		return
	}
	r.seg, r.looked = seg, time.Now()
	err := r.catalog.Log().SaveHolds()
	done, terr := r.catalog.TrimLog(limits, r.rare())
	if done.Files > 0 {
		r.log.info("%d files of the update log (%d bytes) were removed, because they were beyond the limits of -ulog-keep-age, -ulog-keep-size and "+
			"-ulog-keep-count", done.Files, done.Bytes)
	}
	if kept := done.KeptFor(); kept != r.kept {
		if r.kept = kept; kept != "" {
			r.log.system("%d files of the update log (%d bytes) are beyond the limits and are kept, because they are needed for %s",
				done.Kept, done.KeptBytes, kept)
		}
	}
	failed := ""
	if err = errors.Join(err, terr); err != nil {
		failed = err.Error()
	}
	if failed != r.failed {
		if r.failed = failed; failed != "" {
			r.log.error("removing files of the update log: %s", failed)
		}
	}
}

// report adds our own rows about the files of the log, where there is a limit for them.
func (r *retention) report(rows map[string]string) {
	if r == nil || !r.limits().On() {
		return
	}
	log := r.catalog.Log()
	files, err := log.Files()
	if err != nil {
		return
	}
	bytes := int64(0)
	for _, f := range files {
		bytes += f.Size
	}
	rows["ulog_files"] = strconv.Itoa(len(files))
	rows["ulog_bytes"] = strconv.FormatInt(bytes, 10)
	rows["ulog_removed"] = strconv.FormatInt(log.Removed(), 10)
	rows["ulog_overdue_bytes"] = strconv.FormatInt(r.catalog.LogOverdue(), 10)
	for _, h := range log.Holds(files) {
		name := "ulog_held_" + string(h.Kind)
		before, _ := strconv.ParseInt(rows[name], 10, 64) // 0 where there is none yet
		rows[name] = strconv.FormatInt(max(before, h.Bytes), 10)
	}
}

// heldBy names the holders that keep most of an update log, with the bytes that each of them keeps;
// it is empty where nobody keeps anything.
func heldBy(log *ulog.Log) string {
	const most = 3
	if log == nil {
		return ""
	}
	files, err := log.Files()
	if err != nil {
		return ""
	}
	holds := slices.DeleteFunc(log.Holds(files), func(h ulog.HoldInfo) bool { return h.Bytes < mib })
	slices.SortStableFunc(holds, func(a, b ulog.HoldInfo) int { return cmp.Compare(b.Bytes, a.Bytes) })
	var names []string
	for _, h := range holds[:min(most, len(holds))] {
		names = append(names, fmt.Sprintf("%s (%d MiB)", h.What, h.Bytes/mib))
	}
	if len(holds) > most {
		names = append(names, fmt.Sprintf("and %d more", len(holds)-most))
	}
	return strings.Join(names, ", ")
}
