package filestore

import (
	"fmt"
	"io"

	bolt "go.etcd.io/bbolt"
)

// CopyTo writes the file as it is at one moment, without what is only in memory, and returns how many bytes that are. Checkpoints
// go on meanwhile, though the file grows by what they replace.
func (s *Store) CopyTo(w io.Writer) (n int64, err error) {
	err = s.file.View(func(tx *bolt.Tx) error {
		n, err = tx.WriteTo(w)
		return err
	})
	if err != nil {
		return n, fmt.Errorf("copy %s: %w", s.path, err)
	}
	return n, nil
}
