package db

import "path/filepath"

// Places returns the directories that updates are written to, each once.
func (c *Catalog) Places() []string {
	var places []string
	seen := map[string]bool{}
	add := func(dir string) {
		if !seen[dir] {
			seen[dir] = true
			places = append(places, dir)
		}
	}
	for _, l := range c.logs {
		add(l.Dir())
	}
	for _, d := range c.all {
		if d.file != nil {
			add(filepath.Dir(d.path()))
		}
	}
	return places
}

// FileSpace returns by how many bytes files may grow when they take what is still unwritten, and
// how many bytes they can take without growing.
func (c *Catalog) FileSpace() (needed, reusable int64) {
	const pages = 2 // pages may be half full
	for _, d := range c.all {
		if d.file == nil {
			continue
		}
		free, wanted := d.file.Reusable(), pages*d.file.Unwritten()
		needed += max(0, wanted-free)
		reusable += max(0, free-wanted)
	}
	return needed, reusable
}

// unwritten returns the bytes of updates that files have not taken yet.
func (c *Catalog) unwritten() int64 {
	var sum int64
	for _, d := range c.all {
		if d.file != nil {
			sum += d.file.Unwritten()
		}
	}
	return sum
}

// Shrink asks for private logs to become as short as possible: files are written, and the logs
// begin new segments. It does not wait.
func (c *Catalog) Shrink() {
	for _, d := range c.all {
		if d.file == nil {
			continue
		}
		if d.file.Unwritten() > 0 {
			d.file.AskCheckpoint()
		}
		if d.log != nil && !d.sharesLog {
			d.log.BeginSegment()
		}
	}
}

// MemoryUsed returns the bytes of records in memory, updates that files have not taken yet
// included.
func (c *Catalog) MemoryUsed() int64 {
	sum := c.unwritten()
	for _, d := range c.all {
		if d.file == nil {
			sum += d.store.Size()
		}
	}
	return sum
}

// RecordBytes returns the bytes of keys and values of all databases; for databases in memory with
// the memory that keeping them takes.
func (c *Catalog) RecordBytes() int64 {
	var sum int64
	for _, d := range c.all {
		sum += d.store.Size()
	}
	return sum
}
