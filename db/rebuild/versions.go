package rebuild

import (
	"gotycoon/db/filestore"
	"gotycoon/ulog"
)

// versionSuffix comes before sortSuffix in the name of the file that takes the sorted versions.
const versionSuffix = ".version"

// versionShare is the part of the memory that versions may take: they are smaller than records.
const versionShare = 4

// memory sorts the versions and removals that the new file will remember.
type memory struct {
	*sorter
	newest ulog.Stamp
	room   []byte
}

// Remember makes the file remember the last update of a key, in place of an earlier call for the
// key. Commit writes it if its Meta has LWW. Remember may be called in any order, before or after
// the record comes. Clear forgets everything remembered.
func (b *Builder) Remember(key []byte, e filestore.LastUpdate) error {
	b.remembers()
	b.memory.newest = max(b.memory.newest, e.Stamp)
	b.memory.room = filestore.AppendEntry(b.memory.room[:0], e)
	return b.memory.add(key, b.memory.room, false)
}

func (b *Builder) remembers() {
	if b.memory == nil {
		b.memory = &memory{sorter: newSorter(b.fs, b.temp+versionSuffix+sortSuffix, b.opts.Memory/versionShare)}
		b.memory.fold = foldVersions
	}
}

// Fade makes the file remember that a key is removed, and keep its version: the record has expired
// or was evicted, which is no update. Nothing is remembered of a key that has no version.
func (b *Builder) Fade(key []byte) error {
	b.remembers()
	return b.memory.add(key, fade, false)
}

// versions writes the versions and removals behind the records and returns the root, 0 for a file
// without versions.
func (b *Builder) versions(m *filestore.Meta) (root uint64, err error) {
	if m.Removals = 0; !m.LWW {
		return 0, nil
	}
	t := b.tree.behind(filestore.VersionPrefix)
	if b.memory != nil {
		m.Newest = max(m.Newest, b.memory.newest)
		if err := b.memory.finish(); err != nil {
			return 0, err
		}
		all, err := b.memory.merged()
		if err != nil {
			return 0, err
		}
		w := mergeStored(all, func(key []byte, e filestore.LastUpdate) error {
			if e.Removed {
				m.Removals++
			}
			b.memory.room = filestore.AppendEntry(b.memory.room[:0], e)
			return t.put(key, b.memory.room)
		})
		if err := w.rest(); err != nil {
			return 0, err
		}
	}
	root, err = t.finish()
	b.tree.next = t.next
	return root, err
}
