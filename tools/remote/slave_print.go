package remote

import (
	"context"
	"encoding/base64"
	"fmt"

	"gotycoon/client"
	"gotycoon/ulog"
)

// receive prints an update.
func (f *follower) receive(_ context.Context, u client.LogMessage) error {
	if len(u.Log) == 0 {
		return nil
	}
	return f.show(u)
}

// flush prints what is buffered.
func (f *follower) flush(context.Context) error { return f.out.Flush() }

// show prints an update: time stamp, server ID, database, operation, and key and value in Base64.
func (f *follower) show(u client.LogMessage) error {
	up, err := ulog.ParseMessage(u.Log)
	name, columns := "unknown", [][]byte{unknownPart(u.Log)}
	switch {
	case err == nil && up.Op == ulog.OpSet:
		name, columns = "set", [][]byte{up.Key, up.Value}
	case err == nil && up.Op == ulog.OpRemove:
		name, columns = "remove", [][]byte{up.Key}
	case err == nil && up.Op == ulog.OpClear:
		name, columns = "clear", nil
	}
	if f.json {
		return f.printJSON(updateObject(u, up, name, columns))
	}
	fmt.Fprintf(f.out, "%d\t%d\t%d\t%s", u.TS, up.SID, up.DBID, name) // Flush returns the error
	for _, column := range columns {
		fmt.Fprintf(f.out, "\t%s", base64.StdEncoding.EncodeToString(column))
	}
	return f.out.WriteByte('\n')
}

// updateObject makes the JSON object of an update. Keys and values are always in Base64, since a
// value is printed as it is stored, with its expiration time in front.
func updateObject(u client.LogMessage, up ulog.Update, name string, columns [][]byte) map[string]any {
	m := map[string]any{"ts": u.TS, "sid": up.SID, "db": up.DBID, "op": name}
	for i, key := range [...]string{"key_base64", "value_base64"} {
		if i < len(columns) {
			m[key] = base64.StdEncoding.EncodeToString(columns[i])
		}
	}
	return m
}

// unknownPart returns the part that the original prints of an update that it does not understand:
// everything behind the IDs, without the last byte.
func unknownPart(msg []byte) []byte {
	const ids = 4
	if len(msg) <= ids {
		return nil
	}
	return msg[ids : len(msg)-1]
}
