package filestore

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"gotycoon/internal/vfs"
	"gotycoon/ulog/update"
)

// PrivateLog is appended to the name of a database file to make the name of the directory with the
// file's private update log: a.kct has a.kct.wal.
const PrivateLog = ".wal"

// LedgerName is the file in a log's directory that remembers how far each database was
// checkpointed.
//
// It is a JSON object with an entry for each database, under the identity of the database file.
// Package db adds entries for databases in memory, under names of its own:
//
//	{"0123…ef": {"Path": "/data/a.kct", "Epoch": 3, "Stamp": 1700000000000000002, "DBID": 1}}
//
// The ledger tells an older copy of a file from the file. An example: the entry has epoch 3 and the
// file has epoch 2, so somebody has put a backup in place. The server opens it as it is; without
// the ledger the start would roll the backup forward, unasked, to the state that it was to replace.
const LedgerName = "gotycoon.checkpoints"

// LedgerEntry is how far a database was checkpointed. It is written after the checkpoint, so an
// entry never leads its file.
type LedgerEntry struct {
	Path  string       // for people
	Epoch uint64       // Meta.Epoch
	Stamp update.Stamp // Meta.Stamp
	DBID  uint16       `json:",omitempty"` // Meta.DBID
	Open  bool         `json:",omitempty"` // the file was open: the log may have more for it
}

// ReadLedger reads the ledger in a log's directory; it is empty where there is none.
func ReadLedger(fs vfs.FS, dir string) (map[string]LedgerEntry, error) {
	ledger := map[string]LedgerEntry{}
	text, err := vfs.ReadFile(fs, filepath.Join(dir, LedgerName))
	if errors.Is(err, os.ErrNotExist) {
		return ledger, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &ledger)
	}
	if err != nil {
		return nil, err
	}
	return ledger, nil
}

// WriteLedger replaces the ledger in a log's directory, as a whole or not at all.
func WriteLedger(fs vfs.FS, dir string, ledger map[string]LedgerEntry) error {
	text, err := json.MarshalIndent(ledger, "", "\t")
	if err != nil {
		return err
	}
	return vfs.WriteFileAtomic(fs, filepath.Join(dir, LedgerName), text)
}
