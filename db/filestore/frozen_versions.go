package filestore

import (
	"bytes"

	"gotycoon/ulog"
)

// Versions is what a Frozen of a file with Meta.LWW knows beside its records' versions.
type Versions struct {
	Cleared Version    // of the last clear
	Floor   ulog.Stamp // see Meta.Floor
}

// Versions returns false for a file that keeps no versions, and for one that is read only and was not closed by its last process.
func (f *frozen) Versions() (Versions, bool) {
	if !f.meta.LWW || f.view != nil && f.view.active.stamp != f.meta.Stamp {
		return Versions{}, false
	}
	return Versions{Version{f.meta.ClearedAt, f.meta.ClearedBy}, f.meta.Floor}, true
}

// ScanVersions is Scan with versions, and with the removals that are remembered, in the order of keys. A record without a version has the
// Oldest.
func (f *frozen) ScanVersions(visit func(key, value []byte, e LastUpdate) error) error {
	data, versions := f.tx.Bucket([]byte(dataBucket)).Cursor(), f.tx.Bucket([]byte(versionBucket)).Cursor()
	key, value := data.First()
	at, b := versions.First()
	for key != nil || at != nil {
		order := compareHeads(key, at)
		e, ok := LastUpdate{Version: Version{Stamp: Oldest}}, true
		if order >= 0 {
			e, ok = decodeEntry(b)
		}
		var err error
		switch {
		case order <= 0:
			e.Removed = false
			err = visit(key[1:], value, e)
		case ok:
			e.Removed = true
			err = visit(at[1:], nil, e)
		}
		if err != nil {
			return err
		}
		if order <= 0 {
			key, value = data.Next()
		}
		if order >= 0 {
			at, b = versions.Next()
		}
	}
	return nil
}

// compareHeads compares the keys that two cursors are at, without their prefixes; nil is the end.
func compareHeads(a, b []byte) int {
	switch {
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return bytes.Compare(a[1:], b[1:])
}
