package filestore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

// cacheOf watches which pages of a file are in memory.
type cacheOf struct {
	f    *os.File
	data []byte
}

func watchCache(t *testing.T, path string) *cacheOf {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	info, err := f.Stat()
	require.NoError(t, err)
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(data)) })
	return &cacheOf{f, data}
}

// present returns for each page whether it is in memory.
func (c *cacheOf) present(t *testing.T) []bool {
	t.Helper()
	room := make([]byte, (len(c.data)+os.Getpagesize()-1)/os.Getpagesize())
	_, _, failed := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&c.data[0])), uintptr(len(c.data)), uintptr(unsafe.Pointer(&room[0])))
	require.Zero(t, failed)
	there := make([]bool, len(room))
	for i, b := range room {
		there[i] = b&1 != 0
	}
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

// empty has the system forget the file. It skips the test where the file system keeps its files in
// memory.
func (c *cacheOf) empty(t *testing.T) {
	t.Helper()
	require.NoError(t, c.f.Sync())
	require.NoError(t, unix.Fadvise(int(c.f.Fd()), 0, 0, unix.FADV_DONTNEED))
	if there := c.present(t); count(there) > len(there)/20 {
		t.Skip("the file system of TMPDIR does not give pages back")
	}
}

// large makes a file with packed records, records in the tree, and a run over both; it is opened
// anew, and returned with what it has.
func large(t *testing.T, o Options) (s *Store, path string, want map[string]string) {
	t.Helper()
	s, path = quiet(t, Options{Limit: 1 << 30, LWW: o.LWW})
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
	put(60_000, 160)
	put(3000, 1600)
	put(100, 40_000)
	require.NoError(t, s.Merge())
	put(20_000, 320)
	require.NoError(t, s.closeFile())
	o.Limit = 1 << 30
	s, err := Open(path, o)
	require.NoError(t, err)
	s.cp.stop()
	t.Cleanup(func() { _ = s.closeFile() })
	return s, path, want
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
	for _, backward := range []bool{false, true} {
		for name, read := range readAll(backward) {
			t.Run(fmt.Sprintf("%s backward=%t", name, backward), func(t *testing.T) {
				s, path, want := large(t, Options{})
				c := watchCache(t, path)
				c.empty(t)
				n := 0
				for key := range want { // some pages are read by others
					if n++; n > len(want)/50 {
						break
					}
					_, found, err := s.Get(nil, []byte(key), nil)
					require.NoError(t, err)
					require.True(t, found)
				}
				before := c.present(t)
				require.Greater(t, count(before), 100)
				require.Less(t, count(before), len(before)/2)
				seen := map[string]string{}
				read(t, s, func(key, value []byte) { seen[string(key)] = string(value) })
				require.Equal(t, want, seen)
				requireKept(t, before, c.present(t))
			})
		}
	}
}

// requireKept compares the pages that are in memory before and after a scan.
func requireKept(t *testing.T, before, after []bool) {
	t.Helper()
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
	require.LessOrEqual(t, lost, count(before)/50, "pages that others read")
	require.LessOrEqual(t, more, len(before)/10, "pages that the scan has brought")
}

// So does a copy of the file, which after a compaction is another one under the same name.
func TestACopyGivesBackWhatItBrings(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		t.Run(fmt.Sprintf("compacted=%t", compacted), func(t *testing.T) {
			s, path, want := large(t, Options{})
			if compacted {
				require.NoError(t, compact(s))
			}
			c := watchCache(t, path)
			c.empty(t)
			for key := range want {
				_, _, err := s.Get(nil, []byte(key), nil)
				require.NoError(t, err)
				if count(c.present(t)) > 200 {
					break
				}
			}
			before := c.present(t)
			var copied bytes.Buffer
			n, err := s.CopyTo(&copied)
			require.NoError(t, err)
			require.EqualValues(t, copied.Len(), n)
			requireKept(t, before, c.present(t))
			other := path + ".copy"
			require.NoError(t, os.WriteFile(other, copied.Bytes(), 0o600))
			again, err := Open(other, Options{Limit: 1 << 30, TryLock: true})
			require.NoError(t, err)
			defer again.Abandon()
			requireEqual(t, want, again)
			failed := errors.New("no room")
			_, err = s.CopyTo(failing{failed})
			require.ErrorContains(t, err, failed.Error())
		})
	}
}

// So does a compaction, once the runs are merged.
func TestACompactionGivesBackWhatItBrings(t *testing.T) {
	s, path, want := large(t, Options{})
	require.NoError(t, s.Merge())
	s = reopened(t, s, path)
	c := watchCache(t, path)
	c.empty(t)
	for key := range want {
		_, _, err := s.Get(nil, []byte(key), nil)
		require.NoError(t, err)
		if count(c.present(t)) > 200 {
			break
		}
	}
	before := c.present(t)
	require.NoError(t, compact(s))
	requireKept(t, before, c.present(t))
	requireEqual(t, want, s)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// A count of a run with few keys, far apart, reads about what lookups of these keys read.
func TestACountReadsNoMoreThanLookups(t *testing.T) {
	s, path, want := large(t, Options{})
	require.NoError(t, s.Merge())
	var keys []string
	for key := range want {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var ups []update.Update
	for i := 0; i < len(keys); i += 150 {
		ups = append(ups, set(keys[i], want[keys[i]]))
	}
	s.Apply(1000, ups)
	require.NoError(t, s.Checkpoint())
	s = reopened(t, s, path)
	c := watchCache(t, path)
	c.empty(t)
	read := pagesRead(t)
	l, err := s.begin()
	require.NoError(t, err)
	for _, u := range ups {
		_, found, err := l.bottom.get(u.Key)
		require.NoError(t, err)
		require.True(t, found)
	}
	l.end()
	lookups := pagesRead(t) - read
	s = reopened(t, s, path)
	c.empty(t)
	read = pagesRead(t)
	n, err := s.Count()
	require.NoError(t, err)
	require.EqualValues(t, len(want), n)
	counted := pagesRead(t) - read
	t.Logf("%d pages for lookups of %d keys, %d for a count", lookups, len(ups), counted)
	require.Less(t, counted, lookups+len(ups)/8+100) // the run has a page for several keys
}

// pagesRead returns how much this process has read from disks so far.
func pagesRead(t *testing.T) int {
	t.Helper()
	var u unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return int(u.Inblock) * 512 / os.Getpagesize()
}

// In a file that is larger than memory a lookup finds what it finds in another one, and reads one
// page of leaves, seldom two.
func TestLookupsInAFileLargerThanMemory(t *testing.T) {
	const lookups = 400
	read := map[bool]int{}
	for _, large := range []bool{false, true} {
		s, path := quiet(t, Options{Limit: 1 << 30})
		s.file.NoSync = true // for speed
		var ups []update.Update
		random := rand.New(rand.NewPCG(1, 2))
		var keys []string
		for i := range 60_000 {
			keys = append(keys, fmt.Sprintf("%016x", random.Uint64()))
			ups = append(ups, set(keys[i], strings.Repeat(keys[i], 10)))
		}
		s.Apply(1, ups)
		require.NoError(t, s.Merge())
		require.NoError(t, s.closeFile())
		c := watchCache(t, path)
		c.empty(t)
		o := Options{Limit: 1 << 30}
		if large {
			o.Memory = 1 << 20
		}
		s, err := Open(path, o)
		require.NoError(t, err)
		s.cp.stop()
		require.Equal(t, large, s.reading.Load().mirror.Load() != nil)
		before := count(c.present(t))
		for range lookups {
			key := keys[random.IntN(len(keys))]
			value, found, err := s.Get(nil, []byte(key), nil)
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, strings.Repeat(key, 10), string(value))
		}
		read[large] = count(c.present(t)) - before
		for _, key := range keys {
			for _, absent := range []string{key[:15], key + "0", fmt.Sprintf("%016x", random.Uint64())} {
				_, found, err := s.Get(nil, []byte(absent), nil)
				require.NoError(t, err)
				require.False(t, found, absent)
			}
			_, found, err := s.Get(nil, []byte(key), nil)
			require.NoError(t, err)
			require.True(t, found, key)
		}
		require.NoError(t, s.closeFile())
	}
	t.Logf("%d pages for %d lookups, %d in a file that is larger than memory", read[false], lookups, read[true])
	require.Less(t, read[true], read[false]*7/8)
}

// Scans of all kinds, lookups, updates, merges and compactions at the same time do not disturb each
// other.
func TestScansBesideEverything(t *testing.T) {
	s, path, want := large(t, Options{Memory: 1 << 20})
	require.NotNil(t, s.reading.Load().mirror.Load(), "the file is larger than memory")
	c := watchCache(t, path)
	keys := make([]string, 0, len(want))
	for key := range want {
		keys = append(keys, key)
	}
	slices.Sort(keys)
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
			for range 20_000 {
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
