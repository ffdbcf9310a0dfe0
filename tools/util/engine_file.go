package util

import (
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"gotycoon/db"
	"gotycoon/db/rebuild"
	"gotycoon/db/record"
	"gotycoon/snapshot"
)

// source is records that are loaded, in the form in which a database stores them. Their slices are
// valid until the next one is asked for; the error behind the last one is io.EOF.
type source interface {
	Next() (key, stored []byte, err error)
}

// openSource opens what is loaded into a database: a snapshot, without a path from standard input,
// or a database file that no server has open.
func (c *call) openSource(path string, into *db.DB) (s source, end func(), err error) {
	if path == "" {
		s, err = openSnapshot(c.stdin)
		return s, func() {}, err
	}
	switch filepath.Ext(path) {
	case ".kct", ".kch", ".kcd", ".kcf":
		return openFileSource(path, into)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if s, err = openSnapshot(f); err != nil {
		_ = f.Close() // it was only read
		return nil, nil, err
	}
	return s, func() { _ = f.Close() }, nil
}

func openSnapshot(in io.Reader) (source, error) {
	s, err := snapshot.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("the snapshot: %w", err)
	}
	return s, nil
}

// fileSource is the records of a database file.
type fileSource struct {
	next       func() (key, stored []byte, more bool)
	failed     error
	bare, into bool // the values there, and here, have no expiration time in front
}

func openFileSource(path string, into *db.DB) (source, func(), error) {
	f, err := rebuild.Open(path, false, true)
	if err != nil {
		return nil, nil, err
	}
	if m := f.Meta(); !m.Clean && !m.Held {
		_ = f.Close() // it was only read
		return nil, nil, fmt.Errorf("%s is not complete, its server did not stop in order: 'kttimedmgr dump %[1]s SNAPSHOT' makes a snapshot "+
			"that has the updates of its log too, and can be loaded", path)
	}
	s := &fileSource{bare: f.Meta().Persistent, into: into.Info().Persistent}
	next, stop := iter.Pull2(func(yield func(key, stored []byte) bool) {
		s.failed = f.Records(func(key, stored []byte) error {
			if !yield(key, stored) {
				return io.EOF // nobody asks any more
			}
			return nil
		})
	})
	s.next = next
	return s, func() {
		stop()
		_ = f.Close() // it was only read
	}, nil
}

// Next returns the next record.
func (s *fileSource) Next() (key, stored []byte, err error) {
	key, stored, more := s.next()
	switch {
	case !more && s.failed == nil:
		return nil, nil, io.EOF
	case !more:
		return nil, nil, s.failed
	case s.bare && !s.into:
		stored = append(record.AppendXT(nil, record.MaxXT), stored...)
	case !s.bare && s.into:
		_, value, ok := record.Split(stored)
		if !ok {
			return nil, nil, fmt.Errorf("the record %q has no expiration time", key)
		}
		stored = value
	}
	return key, stored, nil
}
