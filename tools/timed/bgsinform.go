package timed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gotycoon/snapshot"
	"gotycoon/tools/show"
)

// serverSuffix is the end of the names of a server's snapshots.
const serverSuffix = ".ktss"

// bgsInform prints facts about a snapshot, or about each snapshot of a directory: the number of the
// database, the time stamp, the number and the size of the records.
func bgsInform(_ context.Context, c *call) error {
	if err := c.withJSON().parse(1, 1); err != nil {
		return err
	}
	path := c.args[0]
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("%s: no such file or directory", path)
	}
	if info.IsDir() {
		return c.informDir(path)
	}
	head, err := readServerHead(path)
	if err != nil {
		return fmt.Errorf("%s: could not open the file", path)
	}
	index, _ := snapshotIndex(path)
	return c.printHead(index, head)
}

func (c *call) informDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		index, numbered := snapshotIndex(e.Name())
		if !numbered || !strings.EqualFold(filepath.Ext(e.Name()), serverSuffix) {
			continue
		}
		head, err := readServerHead(filepath.Join(dir, e.Name()))
		switch {
		case errors.Is(err, snapshot.ErrNoSnapshot):
			fmt.Fprintf(c.stderr, "%s: warning: %s is no snapshot\n", program, e.Name())
			continue
		case err != nil:
			return err
		}
		if err := c.printHead(index, head); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) printHead(index uint64, h snapshot.Header) error {
	if c.json {
		return show.JSON(c.out, show.Object{"db": index, "ts": h.Stamp, "count": h.Count, "size": h.Size})
	}
	_, err := fmt.Fprintf(c.out, "%d\t%d\t%d\t%d\n", index, h.Stamp, h.Count, h.Size)
	return err
}

// snapshotIndex returns the number at the beginning of a snapshot's name. A path with a slash has
// the index 0: scripts for the original expect it.
func snapshotIndex(name string) (index uint64, numbered bool) {
	digits := name[:len(name)-len(strings.TrimLeft(name, "0123456789"))]
	index, err := strconv.ParseUint(digits, 10, 64)
	if strings.Contains(name, "/") {
		return 0, err == nil
	}
	return index, err == nil
}

// readServerHead reads the header of a snapshot, also if its compressor is unknown.
func readServerHead(path string) (snapshot.Header, error) {
	f, err := os.Open(path)
	if err != nil {
		return snapshot.Header{}, err
	}
	defer f.Close()
	h, err := snapshot.ReadHeader(f)
	if errors.Is(err, snapshot.ErrCompressor) {
		err = nil
	}
	return h, err
}
