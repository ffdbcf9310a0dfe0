package ulog

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gotycoon/internal/vfs"
)

// identityName is the file that holds the identity of a log: 32 hexadecimal digits and a line feed. The original lists
// and removes only files that begin with the byte A0, so it leaves this one alone.
const identityName = "gotycoon.id"

// Identity returns the identity of the log in a directory, without opening it. It is an os.ErrNotExist for a directory
// that no Log has opened yet.
func Identity(fs vfs.FS, dir string) (id [16]byte, err error) {
	name := filepath.Join(dir, identityName)
	f, err := fs.OpenFile(name, readOnly, 0)
	if err != nil {
		return id, err
	}
	defer f.Close()
	var text [2*len(id) + 1]byte
	if _, err = f.ReadAt(text[:], 0); err == nil {
		_, err = hex.Decode(id[:], []byte(strings.TrimSuffix(string(text[:]), "\n")))
	}
	if err != nil {
		return id, fmt.Errorf("read log identity %s: %w", name, err)
	}
	return id, nil
}

// newIdentity draws an identity.
func newIdentity() (id [16]byte, err error) {
	_, err = rand.Read(id[:])
	return id, err
}

func writeIdentity(fs vfs.FS, dir string, id [16]byte) error {
	return vfs.WriteFileAtomic(fs, filepath.Join(dir, identityName), fmt.Appendf(nil, "%x\n", id))
}

// RemoveAll removes a log that nobody has open, with its directory. The identity goes first: where a crash leaves it, the log must be complete, or
// it would seem to have lost its segments.
func RemoveAll(fs vfs.FS, dir string) error {
	err := fs.Remove(filepath.Join(dir, identityName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err == nil {
		err = fs.SyncDir(dir)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return vfs.RemoveDir(fs, dir)
}
