package remote

import (
	"encoding/base64"
	"fmt"

	"gotycoon/client"
	"gotycoon/ulog"
)

// show prints one update: time stamp, server, database, what happened, and to which key and value in Base64.
func (f *follower) show(u client.Update) error {
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

// updateObject is an update for programs. Values have the form in which they are stored, so keys and values are always in
// Base64.
func updateObject(u client.Update, up ulog.Update, name string, columns [][]byte) map[string]any {
	m := map[string]any{"ts": u.TS, "sid": up.SID, "db": up.DBID, "op": name}
	for i, key := range [...]string{"key_base64", "value_base64"} {
		if i < len(columns) {
			m[key] = base64.StdEncoding.EncodeToString(columns[i])
		}
	}
	return m
}

// unknownPart is what the original prints of an update that it does not understand: all behind the IDs but the last byte.
func unknownPart(msg []byte) []byte {
	const ids = 4
	if len(msg) <= ids {
		return nil
	}
	return msg[ids : len(msg)-1]
}
