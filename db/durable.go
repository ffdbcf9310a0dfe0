package db

// SyncLog returns when every update made so far would survive a power cut, in every mode. A database in memory without a log
// has nothing that could, and returns at once.
func (d *DB) SyncLog() error {
	if d.log == nil {
		return nil
	}
	return systemError(d.log.SyncTo(d.log.Last()))
}
