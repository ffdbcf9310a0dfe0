package memstore

import (
	"bytes"
	"runtime"

	"gotycoon/db/store"
)

// Scan visits the records as they were. It copies them, so that a slow visit holds nobody up.
func (f *frozen) Scan(backward bool, visit func(key, value []byte) error) error {
	f.mu.Lock()
	f.backward = backward
	f.mu.Unlock()
	s := frozenScan{frozen: f, backward: backward, keyAt: len(f.owner.place(nil, nil))}
	for s.load() {
		runtime.Gosched() // a writer that waited for the locks is next on this processor, and would wait on
		if err := s.merge(visit); err != nil {
			return err
		}
	}
	return nil
}

// A frozenScan is a way through a frozen. It goes on in parts, each with all records up to a place.
type frozenScan struct {
	frozen   *frozen
	backward bool
	keyAt    int // where keys begin in places

	now   chunk  // records as they were when they were copied
	was   chunk  // old records that had been saved, looked at afterwards
	begun bool   // a part has been loaded
	end   []byte // the part's last place
	all   bool   // the part is the last
}

// load makes the next part ready. It returns false when there is none.
func (s *frozenScan) load() bool {
	if s.all {
		return false
	}
	if s.now.empty() && !s.now.last {
		s.loadNow()
	}
	s.loadWas()
	s.begun = true
	s.frozen.pass(s.end, s.all)
	for i := range s.was.len() {
		place, _ := s.was.entry(i)
		s.frozen.saved.Delete(place)
	}
	return true
}

// from returns where the next part begins: behind the previous one.
func (s *frozenScan) from(keyAt int) store.Start {
	if !s.begun {
		return store.Start{Edge: true, Backward: s.backward}
	}
	return store.Start{Key: s.end[keyAt:], Backward: s.backward}
}

// loadNow copies records of the store. If a clear comes meanwhile, the copies may be records that
// were set after the clear. Then loadNow reads the cleared records instead, which the clear has
// handed to the frozen.
func (s *frozenScan) loadNow() {
	f := s.frozen
	from := s.from(s.keyAt)
	for {
		src := f.source()
		s.now.reset()
		_ = src.Scan(from, func(key, value []byte) bool { // memory cannot fail
			if s.now.full() {
				s.now.last = false
				return false
			}
			s.now.room = f.owner.place(s.now.room, key)
			s.now.addValue(value)
			return true
		})
		if f.source() == src {
			return
		}
	}
}

// loadWas copies the saved records up to the last record of now, and sets the end of the part.
func (s *frozenScan) loadWas() {
	s.was.reset()
	_ = s.frozen.saved.Scan(s.from(0), func(place, was []byte) bool {
		switch {
		case !s.now.last && behind(place, s.now.lastPlace(), s.backward):
			return false
		case s.was.full():
			s.was.last = false
			return false
		}
		s.was.room = append(s.was.room, place...)
		s.was.addValue(was)
		return true
	})
	s.all = s.was.last && s.now.last
	switch {
	case s.all:
	case s.was.last:
		s.end = append(s.end[:0], s.now.lastPlace()...)
	default:
		s.end = append(s.end[:0], s.was.lastPlace()...)
	}
}

// merge visits the records of the part.
func (s *frozenScan) merge(visit func(key, value []byte) error) error {
	for s.more() {
		place, value, found := s.next()
		if !found {
			continue
		}
		if err := visit(place[s.keyAt:], value); err != nil {
			return err
		}
	}
	return nil
}

// more reports whether the part has another entry.
func (s *frozenScan) more() bool {
	if s.now.empty() {
		return !s.was.empty()
	}
	place, _ := s.now.head()
	return s.all || !s.was.empty() || !behind(place, s.end, s.backward)
}

// next takes the next entry of the part: the saved one, or else the copied one. found is false
// where there was no record.
func (s *frozenScan) next() (place, value []byte, found bool) {
	if s.was.empty() {
		place, value = s.now.take()
		return place, value, true
	}
	saved, _ := s.was.head()
	if !s.now.empty() {
		place, value = s.now.head()
		if behind(saved, place, s.backward) {
			s.now.at++
			return place, value, true
		}
		if bytes.Equal(saved, place) {
			s.now.at++
		}
	}
	place, was := s.was.take()
	return place, was[1:], was[0] == wasThere
}

// A chunk is entries copied out of a store, in its order.
type chunk struct {
	room []byte
	ends []int // ends of place, value, place, value, …
	at   int   // the next entry
	last bool  // there is nothing behind the chunk
}

func (c *chunk) reset() {
	if cap(c.room) > 4*frozenBytes { // after a long value
		c.room = nil
	}
	c.room, c.ends, c.at, c.last = c.room[:0], c.ends[:0], 0, true
}

// addValue ends an entry whose place has been put behind room.
func (c *chunk) addValue(value []byte) {
	c.ends = append(c.ends, len(c.room))
	c.room = append(c.room, value...)
	c.ends = append(c.ends, len(c.room))
}

func (c *chunk) len() int { return len(c.ends) / 2 }

func (c *chunk) empty() bool { return c.at == c.len() }

func (c *chunk) full() bool { return c.len() == frozenRecords || len(c.room) >= frozenBytes }

// head returns the next entry, and take goes past it.
func (c *chunk) head() (place, value []byte) { return c.entry(c.at) }

func (c *chunk) take() (place, value []byte) {
	c.at++
	return c.entry(c.at - 1)
}

func (c *chunk) entry(i int) (place, value []byte) {
	begin := 0
	if i > 0 {
		begin = c.ends[2*i-1]
	}
	mid, end := c.ends[2*i], c.ends[2*i+1]
	return c.room[begin:mid:mid], c.room[mid:end:end]
}

func (c *chunk) lastPlace() []byte {
	place, _ := c.entry(c.len() - 1)
	return place
}
