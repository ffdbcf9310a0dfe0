package client

import (
	"context"
	"strconv"
	"strings"
)

// Clear removes all records.
func (db *DB) Clear(ctx context.Context) error {
	_, err := db.Call(ctx, "clear")
	return err
}

// Synchronize puts everything into the database's file, and with hard on the disk. command, where it is not empty, is run
// by the server afterwards.
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

// Vacuum removes expired records, of the next step records only where step is over 1.
func (db *DB) Vacuum(ctx context.Context, step int64) error {
	var params []string
	if step > 0 {
		params = []string{"step", strconv.FormatInt(step, 10)}
	}
	_, err := db.Call(ctx, "vacuum", params...)
	return err
}

// Status returns what the server tells about the database, "count" and "size" among it.
func (db *DB) Status(ctx context.Context) (Rows, error) { return db.Call(ctx, "status") }

// Report returns what the server tells about itself.
func (c *Client) Report(ctx context.Context) (Rows, error) { return c.DB("").Call(ctx, "report") }

// Void asks the server to do nothing: a test of the connection.
func (c *Client) Void(ctx context.Context) error {
	_, err := c.DB("").Call(ctx, "void")
	return err
}

// Echo returns its parameters.
func (c *Client) Echo(ctx context.Context, params ...string) (Rows, error) {
	return c.DB("").Call(ctx, "echo", params...)
}

// LogFile is a file of the server's update log.
type LogFile struct {
	Path string
	Size int64
	Last uint64 // newest time stamp in it
}

// LogFiles lists the server's update log.
func (c *Client) LogFiles(ctx context.Context) ([]LogFile, error) {
	out, err := c.DB("").Call(ctx, "ulog_list")
	var files []LogFile
	for _, path := range out.sorted() {
		size, last, _ := strings.Cut(string(out[path]), ":")
		f := LogFile{Path: path}
		f.Size, _ = strconv.ParseInt(size, 10, 64)  // 0 for what is no number
		f.Last, _ = strconv.ParseUint(last, 10, 64) // likewise
		files = append(files, f)
	}
	return files, err
}

// RemoveLogFiles removes files of the server's update log with nothing newer than a time stamp, a number or "now"; ""
// stands for all but the newest.
func (c *Client) RemoveLogFiles(ctx context.Context, ts string) error {
	var params []string
	if ts != "" {
		params = []string{"ts", ts}
	}
	_, err := c.DB("").Call(ctx, "ulog_remove", params...)
	return err
}

// TuneReplication changes the master that the server follows. params are those of tune_replication: host, port, ts, iv.
func (c *Client) TuneReplication(ctx context.Context, params ...string) error {
	_, err := c.DB("").Call(ctx, "tune_replication", params...)
	return err
}

// PlayScript calls a script procedure. params are names and values in turn; so is the result.
func (db *DB) PlayScript(ctx context.Context, name string, params map[string][]byte) (Rows, error) {
	rows := append(db.rows("name", name), prefixed(params)...)
	out, err := db.call(ctx, "play_script", rows)
	return out.unprefixed(), err
}
