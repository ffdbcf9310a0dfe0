package tlsfiles

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/internal/klog"
)

const (
	lookEvery = time.Second // the files are looked at no more often

	// settled: two changes of a file within the resolution of its time stamp look like one. So a
	// file that was changed less than settled ago is read again.
	settled = 2 * time.Second
)

// reloader holds a value that is made from files, and makes a new value when their content changes.
type reloader[T any] struct {
	files  Files
	make   func(contents) (T, error)
	log    *slog.Logger
	latest atomic.Pointer[T]
	looked atomic.Int64 // Unix time in nanoseconds

	mu    sync.Mutex // protects the fields below; held while files are read
	marks map[string]mark
	sum   [sha256.Size]byte // of the content from which the value was made
	fails int               // consecutive looks that found unusable content
	told  string            // the latest error in the log
}

// contents is the content of the files, by path.
type contents map[string][]byte

// mark is what Stat says of a file, to notice changes without reading the file.
type mark struct {
	size    int64
	changed time.Time
	inode   os.FileInfo
}

func (m mark) same(n mark) bool {
	return m.size == n.size && m.changed.Equal(n.changed) && os.SameFile(m.inode, n.inode)
}

// open makes the first value. log may be nil.
func (r *reloader[T]) open() error {
	r.log = orSilent(r.log)
	r.mu.Lock()
	defer r.mu.Unlock()
	marks, err := r.look()
	if err != nil {
		return err
	}
	_, value, err := r.read()
	if err != nil {
		return err
	}
	r.marks = marks
	r.looked.Store(time.Now().UnixNano())
	r.latest.Store(&value)
	return nil
}

// current returns the value. It looks at the files first if the last look was at least lookEvery
// ago.
func (r *reloader[T]) current() *T {
	if now, last := time.Now().UnixNano(), r.looked.Load(); now-last >= int64(lookEvery) || now < last {
		if r.looked.CompareAndSwap(last, now) { // other goroutines use the former value meanwhile
			r.refresh()
		}
	}
	return r.latest.Load()
}

// refresh looks at the files now. It reports whether there is a new value.
func (r *reloader[T]) refresh() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	marks, err := r.look()
	if err == nil && !r.changed(marks) {
		return false
	}
	var value T
	fresh := false
	if err == nil {
		fresh, value, err = r.read()
		r.marks = marks
	}
	switch {
	case err != nil:
		r.tell(err)
		return false
	case !fresh:
		r.fails, r.told = 0, ""
		return false
	}
	r.fails, r.told = 0, ""
	r.latest.Store(&value)
	r.log.Log(context.Background(), klog.LevelSystem, fmt.Sprintf("TLS: new content is in use of %v", r.files.paths()))
	return true
}

// tell logs content that cannot be used, each error once. It does so only at the second look in a
// row: at the first, somebody may be replacing one file after the other. The caller holds mu.
func (r *reloader[T]) tell(err error) {
	if r.fails++; r.fails > 1 && r.told != err.Error() {
		r.told = err.Error()
		r.log.Error(fmt.Sprintf("TLS: the files have changed and cannot be used, what was there before stays in use: %v", err))
	}
}

// look returns the marks of the files.
func (r *reloader[T]) look() (map[string]mark, error) {
	marks := map[string]mark{}
	for _, path := range r.files.paths() {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		marks[path] = mark{info.Size(), info.ModTime(), info}
	}
	return marks, nil
}

// changed reports whether the files may have changed since the last marks. The caller holds mu.
func (r *reloader[T]) changed(marks map[string]mark) bool {
	if r.fails > 0 {
		return true
	}
	for path, m := range marks {
		if !m.same(r.marks[path]) || time.Since(m.changed) < settled {
			return true
		}
	}
	return false
}

// read makes a value from the files. If their content is that of the present value, fresh is false
// and there is no new value. The caller holds mu.
func (r *reloader[T]) read() (fresh bool, value T, err error) {
	all, hash := contents{}, sha256.New()
	for _, path := range r.files.paths() {
		content, err := os.ReadFile(path)
		if err != nil {
			return false, value, err
		}
		all[path] = content
		fmt.Fprintf(hash, "%s %d ", path, len(content))
		_, _ = hash.Write(content) // documented never to fail
	}
	sum := [sha256.Size]byte(hash.Sum(nil))
	if sum == r.sum && r.latest.Load() != nil {
		return false, value, nil
	}
	if value, err = r.make(all); err != nil {
		return false, value, err
	}
	r.sum = sum
	return true, value, nil
}
