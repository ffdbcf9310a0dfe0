package replay

import (
	"fmt"

	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// PassedOver is what a database was opened without.
type PassedOver struct {
	LogDir  string     // the update log that has the updates
	DBID    uint16     // the database's number there
	After   ulog.Stamp // all of them have greater time stamps
	Updates int64      // how many there are; 0: unknown
	Last    ulog.Stamp // of the newest; 0: unknown

	Gone bool // the log is not there
}

// String returns the columns of report.
func (p *PassedOver) String() string {
	return fmt.Sprintf("updates=%d after=%d last=%d dbid=%d log=%s", p.Updates, p.After, p.Last, p.DBID, p.LogDir)
}

// Advice says what the database at a path lacks, and how to bring it in.
func (p *PassedOver) Advice(path string) string {
	return fmt.Sprintf("%s. Later updates in the update log %s can be brought in, while no server has the file open, with: %s",
		p.What(), p.LogDir, p.Command(path))
}

// What describes the missing updates, for people.
func (p *PassedOver) What() string {
	if p.Updates == 0 {
		return fmt.Sprintf("updates after the time stamp %d may be missing", p.After)
	}
	return fmt.Sprintf("it lacks acknowledged updates: %d, with time stamps after %d and up to %d", p.Updates, p.After, p.Last)
}

// Command is the command line that brings the updates in.
func (p *PassedOver) Command(path string) string {
	return fmt.Sprintf("kttimedmgr recover -ts %d -dbid %d %s %s", p.After, p.DBID, path, p.LogDir)
}

// Behind counts what the log in a directory has for a database after a stamp. anyDB counts the
// updates of all databases. complete is false where the log could not be read whole.
func Behind(fs vfs.FS, dir string, dbid uint16, anyDB bool, after ulog.Stamp) (p PassedOver, complete bool) {
	p = PassedOver{LogDir: dir, DBID: dbid, After: after}
	r, err := ulog.OpenReader(fs, dir, after, ulog.ReaderOptions{})
	if err != nil {
		return p, false
	}
	complete = true
	run := Replay{
		Log:       r,
		Targets:   []Target{{DBID: dbid, AnyDB: anyDB}},
		Gap:       func(*ulog.GapError) error { complete = false; return nil },
		Malformed: func(ulog.Entry, ulog.Update, error) error { return nil },
	}
	run.Targets[0].Apply = func(at ulog.Stamp, _ ulog.Update) error {
		p.Updates++
		p.Last = at
		return nil
	}
	err = run.Run()
	return p, r.Close() == nil && complete && err == nil
}
