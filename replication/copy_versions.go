package replication

import (
	"gotycoon/client"
	"gotycoon/db"
	"gotycoon/ulog"
)

// Where both databases keep versions, a copy tells those of its records, and the removals. Each is stored if it is newer than what there
// is, so nothing is lost that has been made here and has not come to the master yet.

// oldest is the stamp of a record that the master had before it kept versions.
const oldest = db.OldestVersion

// visitVersion is visit for a copy with versions.
func (c *copier) visitVersion(key, value []byte, v client.CopyVersion) error {
	u := c.update(ulog.OpSet, key, value)
	if v.Removed {
		u.Op = ulog.OpRemove
	}
	u.SID, u.Origin = v.SID, ulog.Origin{Log: ulog.UnknownLog, Stamp: ulog.Stamp(v.Stamp)}
	if u.Origin.Stamp <= oldest { // nobody knows who has made it: of two such the master's counts
		u.SID = c.hello.SID
	}
	return c.take(u)
}

// clearOf is the last clear that the master has had.
func (c *copier) clearOf(info client.CopyInfo) ulog.Update {
	u := c.update(ulog.OpClear, nil, nil)
	u.SID, u.Origin = info.ClearedBy, ulog.Origin{Log: ulog.UnknownLog, Stamp: ulog.Stamp(info.ClearedAt)}
	return u
}

// forgotten returns those of some removals of records that are not in the copy which the master has made and forgotten since: removals of
// what it has made itself, as long ago. What others have made it may not have had yet.
func (c *copier) forgotten(ups []ulog.Update) (kept []ulog.Update, err error) {
	for _, u := range ups {
		v, found, err := c.db.LastVersion(u.Key)
		if err != nil {
			return nil, err
		}
		if found && v.SID == c.hello.SID && v.Stamp > oldest && v.Stamp < c.floor {
			u.Origin = ulog.Origin{Log: ulog.UnknownLog, Stamp: c.floor}
			kept = append(kept, u)
		}
	}
	return kept, nil
}
