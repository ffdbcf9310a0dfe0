package filestore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// cacheOf watches which pages of a file are in memory. It is blind where the system does not say so,
// or does not give pages back: then the tests look at everything else.
type cacheOf struct {
	f     *os.File
	data  []byte
	blind string // why
}

func watchCache(t *testing.T, path string) *cacheOf {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	info, err := f.Stat()
	require.NoError(t, err)
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	_ = unix.Madvise(data, unix.MADV_RANDOM) // advice
	c := &cacheOf{f: f, data: data}
	if err := givesBack(path); err != nil {
		c.blind = err.Error()
	} else if os.Getpagesize() != 4096 {
		c.blind = "the figures are those of pages of 4 KiB"
	}
	return c
}

func (c *cacheOf) close() {
	_ = c.f.Close()
	_ = unix.Munmap(c.data)
}

// givesBack tries whether the system says what is in memory, and gives pages back, with a file of
// its own beside path: nobody else has mapped that.
func givesBack(path string) error {
	path += ".probe"
	defer os.Remove(path)
	if err := os.WriteFile(path, make([]byte, 16*os.Getpagesize()), 0o600); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return err
	}
	data, err := unix.Mmap(int(f.Fd()), 0, 16*os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(data)
	for range 10 { // the system may be busy with the page
		if data[0] != 0 { // it is read
			return errors.New("the file has something else")
		}
		if err := unix.Madvise(data, unix.MADV_PAGEOUT); err != nil {
			return fmt.Errorf("MADV_PAGEOUT: %w", err)
		}
		if there, err := inMemory(data); err != nil || !there[0] {
			return err
		}
	}
	return errors.New("the system does not give pages back")
}

// inMemory returns for each page whether it is in memory.
func inMemory(data []byte) ([]bool, error) {
	room := make([]byte, (len(data)+os.Getpagesize()-1)/os.Getpagesize())
	_, _, failed := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)), uintptr(unsafe.Pointer(&room[0])))
	if failed != 0 {
		return nil, fmt.Errorf("mincore: %w", failed)
	}
	there := make([]bool, len(room))
	for i, b := range room {
		there[i] = b&1 != 0
	}
	return there, nil
}

// present returns for each page whether it is in memory.
func (c *cacheOf) present(t *testing.T) []bool {
	t.Helper()
	if c.blind != "" {
		return nil
	}
	there, err := inMemory(c.data)
	require.NoError(t, err)
	return there
}

func count(pages []bool) (n int) {
	for _, there := range pages {
		if there {
			n++
		}
	}
	return n
}

// empty has the system forget the file, of which hardly a page was read since it was opened.
func (c *cacheOf) empty(t *testing.T) {
	t.Helper()
	if c.blind != "" {
		return
	}
	require.NoError(t, c.f.Sync())
	if err := unix.Fadvise(int(c.f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		c.blind = fmt.Sprintf("FADV_DONTNEED: %v", err)
	} else if there := c.present(t); count(there) > len(there)/10 {
		c.blind = "the file system of TMPDIR keeps its files in memory"
	}
}

// kept compares the pages that are in memory now with those of before a scan, and returns what is
// wrong.
func (c *cacheOf) kept(t *testing.T, before []bool) error {
	t.Helper()
	if c.blind != "" {
		return nil
	}
	after := c.present(t)
	lost, more := 0, 0
	for i := range before {
		switch {
		case before[i] && !after[i]:
			lost++
		case after[i] && !before[i]:
			more++
		}
	}
	t.Logf("%d of %d pages were in memory; then %d of these are not, and %d others are", count(before), len(before), lost, more)
	if lost > count(before)/50 || more > len(before)/10 {
		return fmt.Errorf("%d pages that others read have left memory, and %d that the scan has brought are there", lost, more)
	}
	return nil
}

// measure has something measured a few times, until it is as it should be: other programs on the
// machine push pages out, and bring them, as they like.
func measure(t *testing.T, once func(t *testing.T) error) {
	t.Helper()
	var err error
	for range 4 {
		if err = once(t); err == nil {
			return
		}
		t.Logf("once more: %v", err)
	}
	require.NoError(t, err)
}

// large makes a file with packed records, records in the tree, and a run over both. It returns where
// the file is, and what it has.
func large(t *testing.T) (path string, want map[string]string) {
	t.Helper()
	s, path := quiet(t, Options{Limit: 1 << 30})
	s.file.NoSync = true // for speed
	want = map[string]string{}
	at, random := update.Stamp(0), rand.New(rand.NewPCG(1, 2))
	put := func(n, size int) {
		var ups []update.Update
		for range n {
			key := fmt.Sprintf("%016x", random.Uint64())
			want[key] = strings.Repeat(key, size/16)
			ups = append(ups, set(key, want[key]))
		}
		at++
		s.Apply(at, ups)
		require.NoError(t, s.Checkpoint())
	}
	put(30_000, 160)
	put(1500, 1600)
	put(50, 40_000)
	require.NoError(t, s.Merge())
	put(10_000, 320)
	require.NoError(t, s.closeFile())
	return path, want
}

// openLarge opens a file that nobody has open.
func openLarge(t *testing.T, path string, memory int64) *Store {
	t.Helper()
	s, err := Open(path, Options{Limit: 1 << 30, Memory: memory})
	require.NoError(t, err)
	s.cp.stop()
	t.Cleanup(func() { _ = s.closeFile() })
	return s
}

// readSome reads some records, and returns the pages that are in memory then.
func readSome(t *testing.T, s *Store, c *cacheOf, want map[string]string) []bool {
	t.Helper()
	n := 0
	for key := range want {
		if n++; n > len(want)/50 {
			break
		}
		_, found, err := s.Get(nil, []byte(key), nil)
		require.NoError(t, err)
		require.True(t, found)
	}
	before := c.present(t)
	if c.blind != "" {
		t.Logf("which pages are in memory is not looked at: %s", c.blind)
		return nil
	}
	require.Less(t, count(before), len(before)/2)
	return before
}

// readAll are the ways to read all records of a file.
func readAll(backward bool) map[string]func(t *testing.T, s *Store, visit func(key, value []byte)) {
	pieces := func(each int) func(t *testing.T, s *Store, visit func(key, value []byte)) {
		return func(t *testing.T, s *Store, visit func(key, value []byte)) {
			from := store.Start{Edge: true, Backward: backward}
			for more := true; more; {
				n := 0
				more = false
				var last []byte
				require.NoError(t, s.Scan(from, func(key, value []byte) bool {
					if n == each {
						more = true
						return false
					}
					n++
					last = append(last[:0], key...)
					visit(key, value)
					return true
				}))
				from = store.Start{Key: bytes.Clone(last), Backward: backward}
			}
		}
	}
	return map[string]func(t *testing.T, s *Store, visit func(key, value []byte)){
		"a record at a time": pieces(1),
		"pieces":             pieces(512),
		"one scan":           pieces(1 << 40),
		"frozen": func(t *testing.T, s *Store, visit func(key, value []byte)) {
			f, err := s.Freeze(func(take func()) { take() })
			require.NoError(t, err)
			defer f.Close()
			require.NoError(t, f.Scan(backward, func(key, value []byte) error {
				visit(key, value)
				return nil
			}))
		},
	}
}

// A scan of a file leaves in memory what was there, and not much else; it reads the same records as
// any.
func TestScansGiveBackWhatTheyBring(t *testing.T) {
	path, want := large(t)
	for _, backward := range []bool{false, true} {
		for name, read := range readAll(backward) {
			t.Run(fmt.Sprintf("%s backward=%t", name, backward), func(t *testing.T) {
				measure(t, func(t *testing.T) error {
					s := openLarge(t, path, 0)
					defer s.closeFile()
					c := watchCache(t, path)
					defer c.close()
					c.empty(t)
					before := readSome(t, s, c, want)
					seen := map[string]string{}
					read(t, s, func(key, value []byte) { seen[string(key)] = string(value) })
					require.True(t, maps.Equal(want, seen))
					if c.blind == "" {
						require.Positive(t, s.PagesAsked(), "pages for which the scan has waited")
					}
					return c.kept(t, before)
				})
			})
		}
	}
}

// So does a copy of the file, which after a compaction is another one under the same name.
func TestACopyGivesBackWhatItBrings(t *testing.T) {
	path, want := large(t)
	for _, compacted := range []bool{false, true} {
		t.Run(fmt.Sprintf("compacted=%t", compacted), func(t *testing.T) {
			var copied bytes.Buffer
			measure(t, func(t *testing.T) error {
				s := openLarge(t, path, 0)
				defer s.closeFile()
				if compacted {
					require.NoError(t, compact(s))
				}
				c := watchCache(t, path)
				defer c.close()
				c.empty(t)
				before := readSome(t, s, c, want)
				copied.Reset()
				n, err := s.CopyTo(&copied)
				require.NoError(t, err)
				require.EqualValues(t, copied.Len(), n)
				wrong := c.kept(t, before)
				failed := errors.New("no room")
				_, err = s.CopyTo(failing{failed})
				require.ErrorContains(t, err, failed.Error())
				return wrong
			})
			other := path + ".copy"
			require.NoError(t, os.WriteFile(other, copied.Bytes(), 0o600))
			requireEqual(t, want, openLarge(t, other, 0))
		})
	}
}

// So does a compaction, once the runs are merged.
func TestACompactionGivesBackWhatItBrings(t *testing.T) {
	path, want := large(t)
	s := openLarge(t, path, 0)
	require.NoError(t, s.Merge())
	require.NoError(t, s.closeFile())
	measure(t, func(t *testing.T) error {
		s = openLarge(t, path, 0)
		defer s.closeFile()
		c := watchCache(t, path)
		defer c.close()
		c.empty(t)
		before := readSome(t, s, c, want)
		require.NoError(t, compact(s))
		return c.kept(t, before)
	})
	requireEqual(t, want, openLarge(t, path, 0))
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// A count of a run with few keys, far apart, reads about what lookups of these keys read.
func TestACountReadsNoMoreThanLookups(t *testing.T) {
	path, want := large(t)
	keys := slices.Sorted(maps.Keys(want))
	var ups []update.Update
	for i := 0; i < len(keys); i += 150 {
		ups = append(ups, set(keys[i], want[keys[i]]))
	}
	s := openLarge(t, path, 0)
	require.NoError(t, s.Merge())
	s.Apply(1000, ups)
	require.NoError(t, s.Checkpoint())
	require.NoError(t, s.closeFile())
	read := func(t *testing.T, what func(s *Store)) (pages int, blind string) {
		s := openLarge(t, path, 0)
		defer s.closeFile()
		c := watchCache(t, path)
		defer c.close()
		c.empty(t)
		before := pagesRead(t)
		what(s)
		return pagesRead(t) - before, c.blind
	}
	measure(t, func(t *testing.T) error {
		lookups, blind := read(t, func(s *Store) {
			l, err := s.begin()
			require.NoError(t, err)
			defer l.end()
			for _, u := range ups {
				_, found, err := l.bottom.get(u.Key)
				require.NoError(t, err)
				require.True(t, found)
			}
		})
		counted, _ := read(t, func(s *Store) {
			n, err := s.Count()
			require.NoError(t, err)
			require.EqualValues(t, len(want), n)
		})
		t.Logf("%d pages for lookups of %d keys, %d for a count", lookups, len(ups), counted)
		if blind == "" && counted > lookups+len(ups)/8+100 { // the run has a page for several keys
			return errors.New("a count reads much more than lookups")
		}
		return nil
	})
}

// pagesRead returns how much this process has read from disks so far.
func pagesRead(t *testing.T) int {
	t.Helper()
	var u unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return int(u.Inblock) * 512 / os.Getpagesize()
}

// In a file that is larger than memory a lookup finds what it finds in another one.
func TestLookupsInAFileLargerThanMemory(t *testing.T) {
	s, _, keys := mirrored(t, 20_000)
	random := rand.New(rand.NewPCG(1, 3))
	for _, key := range keys[:5000] {
		for _, absent := range []string{key[:15], key + "0", fmt.Sprintf("%016x", random.Uint64())} {
			_, found, err := s.Get(nil, []byte(absent), nil)
			require.NoError(t, err)
			require.False(t, found, absent)
		}
		value, found, err := s.Get(nil, []byte(key), nil)
		require.NoError(t, err)
		require.True(t, found, key)
		require.Equal(t, strings.Repeat(key, 10), string(value))
	}
}

// Such a lookup reads one page of leaves, seldom two.
func TestLookupsInAFileLargerThanMemoryReadOneLeaf(t *testing.T) {
	const lookups = 400
	s, path, keys := mirrored(t, 60_000)
	require.NoError(t, s.closeFile())
	measure(t, func(t *testing.T) error {
		read, blind := map[bool]int{}, ""
		random := rand.New(rand.NewPCG(1, 2))
		for _, larger := range []bool{false, true} {
			memory := int64(1 << 40)
			if larger {
				memory = 1 << 20
			}
			s := openLarge(t, path, memory)
			require.Equal(t, larger, s.reading.Load().mirror.Load() != nil)
			c := watchCache(t, path)
			c.empty(t)
			before := count(c.present(t))
			for range lookups {
				_, found, err := s.Get(nil, []byte(keys[random.IntN(len(keys))]), nil)
				require.NoError(t, err)
				require.True(t, found)
			}
			read[larger], blind = count(c.present(t))-before, c.blind
			c.close()
			require.NoError(t, s.closeFile())
		}
		t.Logf("%d pages for %d lookups, %d in a file that is larger than memory %s", read[false], lookups, read[true], blind)
		if blind == "" && read[true] >= read[false]*7/8 {
			return errors.New("a file that is larger than memory reads as many")
		}
		return nil
	})
}

// Scans of all kinds, lookups, updates, merges and compactions at the same time do not disturb each
// other.
func TestScansBesideEverything(t *testing.T) {
	path, want := large(t)
	s := openLarge(t, path, 1<<20)
	require.True(t, s.reading.Load().mirror.Load() != nil, "the file is larger than memory")
	c := watchCache(t, path)
	defer c.close()
	keys := slices.Sorted(maps.Keys(want))
	var readers sync.WaitGroup
	for _, backward := range []bool{false, true} {
		for name, read := range readAll(backward) {
			if name == "a record at a time" && backward { // one of them is slow enough
				continue
			}
			readers.Go(func() {
				seen := 0
				read(t, s, func(key, value []byte) {
					seen++
					if want[string(key)] != string(value) {
						t.Errorf("%s: the record of %q is another one", name, key)
					}
				})
				if seen != len(want) {
					t.Errorf("%s: %d records instead of %d", name, seen, len(want))
				}
			})
		}
	}
	readers.Go(func() {
		if _, err := s.CopyTo(io.Discard); err != nil {
			t.Error(err)
		}
	})
	for seed := range uint64(2) {
		readers.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			for range 5000 {
				key := keys[random.IntN(len(keys))]
				value, found, err := s.Get(nil, []byte(key), nil)
				if err != nil || !found || string(value) != want[key] {
					t.Errorf("the record of %q is not found: %v", key, err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { readers.Wait(); close(done) }()
	random := rand.New(rand.NewPCG(3, 1))
	for at, round := update.Stamp(100), 0; ; round++ {
		select {
		case <-done:
			require.NoError(t, compact(s)) // however quick the readers were
			require.True(t, s.reading.Load().mirror.Load() != nil, "the file still is larger than memory")
			requireEqual(t, want, s)
			return
		default:
		}
		var ups []update.Update
		for range 500 { // the same values: readers know them
			key := keys[random.IntN(len(keys))]
			ups = append(ups, set(key, want[key]))
		}
		at++
		s.Apply(at, ups)
		require.NoError(t, s.Checkpoint())
		if round%4 == 3 {
			require.NoError(t, s.Merge())
		}
		if round%8 == 7 {
			require.NoError(t, compact(s))
		}
		_ = unix.Fadvise(int(c.f.Fd()), 0, 0, unix.FADV_DONTNEED)
	}
}
