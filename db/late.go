package db

import "gotycoon/db/owed"

// Late is a commit that several operations share. Its home is package owed.
type Late = owed.Late

// AllowsLate reports whether updates may share a commit that is made before their clients are told
// (Late). It is false while such a commit might be refused, because a client that is refused must
// be told why, and where a client waits for more than a write of the log.
func (d *DB) AllowsLate() bool {
	return d.shared == nil && d.log != nil && !d.log.SyncsEach() && d.log.Confirmer(false) == nil &&
		!d.refuses() && d.gate.Roomy()
}
