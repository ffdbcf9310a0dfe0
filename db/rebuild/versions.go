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
	if b.memory == nil {
		b.memory = &memory{sorter: newSorter(b.fs, b.temp+versionSuffix+sortSuffix, b.opts.Memory/versionShare)}
	}
	b.memory.newest = max(b.memory.newest, e.Stamp)
	b.memory.room = filestore.AppendEntry(b.memory.room[:0], e)
	return b.memory.add(key, b.memory.room, false)
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
		w := mergeWriter{m: all, put: func(key, value []byte) error {
			if e, _ := filestore.DecodeEntry(value); e.Removed {
				m.Removals++
			}
			return t.put(key, value)
		}}
		if err := w.rest(); err != nil {
			return 0, err
		}
	}
	root, err = t.finish()
	b.tree.next = t.next
	return root, err
}

// memory hands out the versions and removals that a damaged file remembers.
func (s *salvager) memory() error {
	if s.remember == nil || s.versions.page == 0 {
		return nil
	}
	w := walker{pages: &s.pages, bad: func(d *Damage, _ span) error { s.lose(d, nil); return nil }}
	w.seen = func(p page) error {
		if !s.reached.set(p.id) {
			return s.damage(p.id, "is reached twice")
		}
		s.progress(int(p.overflow) + 1)
		return nil
	}
	w.leaf = func(p page, _ span) error {
		bad := 0
		for i := range min(int(p.count), (len(p.raw)-headSize)/elementSize) {
			el, ok := p.at(i)
			e, entry := filestore.DecodeEntry(el.value)
			if !ok || !entry || len(el.key) == 0 || el.key[0] != filestore.VersionPrefix {
				bad++
				continue
			}
			if err := s.remember(el.key[1:], e); err != nil {
				return err
			}
		}
		if bad > 0 {
			s.lose(s.damage(p.id, "%d versions of records cannot be read", bad), nil)
		}
		return nil
	}
	return w.bucket(s.versions)
}
