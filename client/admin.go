package client

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Clear removes all records.
func (db *DB) Clear(ctx context.Context) error {
	_, err := db.Call(ctx, "clear")
	return err
}

// Synchronize writes all updates into the database's file; with hard it also syncs the file to the
// disk. If command is not empty, the server runs it afterwards; a failure of the command is an
// error with the code Internal.
func (db *DB) Synchronize(ctx context.Context, hard bool, command string) error {
	var params []string
	if hard {
		params = append(params, "hard", "")
	}
	if command != "" {
		params = append(params, "command", command)
	}
	_, err := db.Call(ctx, "synchronize", params...)
	return err
}

// Vacuum removes expired records. It examines the next step records if step is above 1, otherwise
// all records.
func (db *DB) Vacuum(ctx context.Context, step int64) error {
	var params []string
	if step > 0 {
		params = []string{"step", strconv.FormatInt(step, 10)}
	}
	_, err := db.Call(ctx, "vacuum", params...)
	return err
}

// CompactionState tells of the compaction of a database's file.
type CompactionState struct {
	Running       bool
	Copied, Total int64 // bytes of records that are copied, and about how many there are
	Before, After int64 // bytes of the file, when the compaction has ended
}

// BeginCompact begins to compact the file of the database, or joins the compaction that is under
// way, and returns at once. The compaction gives unused disk space back while the database is in
// use.
func (db *DB) BeginCompact(ctx context.Context) (CompactionState, error) {
	return db.compaction(ctx)
}

// AwaitCompact returns when the compaction that is under way has ended, and at the latest after
// about limit, which is whole seconds.
func (db *DB) AwaitCompact(ctx context.Context, limit time.Duration) (CompactionState, error) {
	return db.compaction(ctx, "look", "", "wait", strconv.FormatInt(int64(limit/time.Second), 10))
}

// Compact compacts the file of the database and returns when that is done. Until then it asks every
// few seconds. When ctx is done, the compaction goes on.
func (db *DB) Compact(ctx context.Context) (CompactionState, error) {
	st, err := db.BeginCompact(ctx)
	for err == nil && st.Running {
		st, err = db.AwaitCompact(ctx, compactLook)
	}
	return st, err
}

const compactLook = 2 * time.Second // less than the usual timeouts of clients

// AbortCompact ends the compaction that is under way; the file stays as it is.
func (db *DB) AbortCompact(ctx context.Context) error {
	_, err := db.Call(ctx, "compact", "abort", "")
	return err
}

func (db *DB) compaction(ctx context.Context, params ...string) (st CompactionState, err error) {
	rows, err := db.Call(ctx, "compact", params...)
	if err != nil {
		return st, err
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(string(rows[name]), 10, 64) // 0 where there is none
		return n
	}
	return CompactionState{number("running") > 0, number("copied"), number("total"), number("before"), number("after")}, nil
}

// Status returns the figures of the database, among them "count" and "size".
func (db *DB) Status(ctx context.Context) (Rows, error) { return db.Call(ctx, "status") }

// Report returns the figures of the server.
func (c *Client) Report(ctx context.Context) (Rows, error) { return c.DB("").Call(ctx, "report") }

// Option is an option of the server.
type Option struct {
	Name, Value string
	Source      string // where the value comes from, such as "command line" or "kt.toml:3"
	Running     bool   // SetOption can change it
	Secret      bool   // the value is not told
}

// Options returns the options of the server as they are in effect, in the order of their names; or
// the one with a name, if it is not empty.
func (c *Client) Options(ctx context.Context, name string) ([]Option, error) {
	var params []string
	if name != "" {
		params = []string{"name", name}
	}
	rows, err := c.DB("").Call(ctx, "config_get", params...)
	if err != nil {
		return nil, err
	}
	var all []Option
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		o := Option{Name: name}
		fields, value, _ := strings.Cut(string(rows[name]), " value=")
		// An error leaves the fields that are missing as they are.
		_, _ = fmt.Sscanf(fields, "running=%t secret=%t source=%q", &o.Running, &o.Secret, &o.Source)
		o.Value = value
		all = append(all, o)
	}
	return all, nil
}

// SetOption changes an option of the server while it runs. lasts is "yes" if the server has the
// value after its next start too, else it says how to keep it.
func (c *Client) SetOption(ctx context.Context, name, value string) (lasts string, err error) {
	rows, err := c.DB("").Call(ctx, "config_set", "name", name, "value", value)
	return string(rows["lasts"]), err
}

// Void calls a procedure that does nothing, to test the connection.
func (c *Client) Void(ctx context.Context) error {
	_, err := c.DB("").Call(ctx, "void")
	return err
}

// Echo returns its parameters, names and values in turn.
func (c *Client) Echo(ctx context.Context, params ...string) (Rows, error) {
	return c.DB("").Call(ctx, "echo", params...)
}

// LogFile is a file of the server's update log.
type LogFile struct {
	Path string // on the server
	Size int64  // in bytes
	Last uint64 // time stamp of the newest update in the file
}

// UlogList lists the files of the server's update log, oldest first.
func (c *Client) UlogList(ctx context.Context) ([]LogFile, error) {
	out, err := c.DB("").Call(ctx, "ulog_list")
	if err != nil {
		return nil, err
	}
	files := make([]LogFile, 0, len(out))
	for _, path := range out.sorted() {
		size, last, _ := strings.Cut(string(out[path]), ":")
		f := LogFile{Path: path}
		f.Size, _ = strconv.ParseInt(size, 10, 64)  // 0 if it is no number
		f.Last, _ = strconv.ParseUint(last, 10, 64) // likewise
		files = append(files, f)
	}
	return files, nil
}

// UlogRemove removes those files of the server's update log whose updates are all as old as upTo or
// older; 0 means now. The newest file always stays.
func (c *Client) UlogRemove(ctx context.Context, upTo uint64) error {
	var params []string
	if upTo > 0 {
		params = []string{"ts", strconv.FormatUint(upTo, 10)}
	}
	_, err := c.DB("").Call(ctx, "ulog_remove", params...)
	return err
}

// Master says from where a server replicates.
type Master struct {
	Host     string        // empty: the server does not replicate
	Port     int           // 0: 1978
	TS       string        // time stamp to begin after, or "now"; empty: the server's position
	Copy     bool          // first replace the server's databases by copies of the master's
	Interval time.Duration // pause between two looks for updates; NoPause, or 0: unchanged
}

// NoPause is the Interval of a server that replicates as fast as it can.
const NoPause time.Duration = -1

// TuneReplication changes the master that the server follows.
func (c *Client) TuneReplication(ctx context.Context, m Master) error {
	var params []string
	add := func(name, value string) { params = append(params, name, value) }
	if m.Host != "" {
		add("host", m.Host)
	}
	if m.Port != 0 {
		add("port", strconv.Itoa(m.Port))
	}
	if m.TS != "" {
		add("ts", m.TS)
	}
	if m.Copy {
		add("copy", "true")
	}
	if m.Interval != 0 {
		add("iv", formatFloat(float64(max(0, m.Interval))/float64(time.Millisecond)))
	}
	_, err := c.DB("").Call(ctx, "tune_replication", params...)
	return err
}

// SetReadOnly makes a server that replicates refuse updates of its clients, but not of its master.
// With false it ends that.
func (c *Client) SetReadOnly(ctx context.Context, on bool) error {
	_, err := c.DB("").Call(ctx, "tune_replication", "readonly", strconv.FormatBool(on))
	return err
}

// BecomePrimary makes the server the primary among the servers that replicate each other: the
// server that changes quotas and gives out fencing tokens. It returns when the server is the
// primary. Without force, a server refuses that may lack records of the present primary.
func (c *Client) BecomePrimary(ctx context.Context, force bool) error {
	how := "true"
	if force {
		how = "force"
	}
	_, err := c.DB("").Call(ctx, "tune_replication", "primary", how)
	return err
}

// Replicas lists the servers and programs that follow the server's update log. Each row is named by
// the number of the connection; its value has fields NAME=VALUE with blanks between them.
func (c *Client) Replicas(ctx context.Context) (Rows, error) {
	return c.DB("").Call(ctx, "replicas")
}

// WaitReplicas waits until n followers of the server have everything that was written until now, or
// up to a stamp of its update log where at is not 0, but for limit at most. It returns how many
// have it. Where n is 0 the server's own number counts (-sync-replicas). When the followers are too
// few, the error says how many there are.
func (c *Client) WaitReplicas(ctx context.Context, n int, at uint64, limit time.Duration) (have int, err error) {
	in := []string{"timeout", strconv.FormatFloat(limit.Seconds(), 'f', -1, 64)}
	if n > 0 {
		in = append(in, "replicas", strconv.Itoa(n))
	}
	if at > 0 {
		in = append(in, "ts", strconv.FormatUint(at, 10))
	}
	rows, err := c.DB("").Call(ctx, "wait_replicas", in...)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(rows["replicas"]))
}

// PlayScript calls a procedure of the server's script and returns its results.
func (db *DB) PlayScript(ctx context.Context, name string, params map[string][]byte) (Rows, error) {
	rows := append(db.rows("name", name), prefixed(params)...)
	out, err := db.call(ctx, "play_script", rows)
	return out.unprefixed(), err
}
