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
	lookEvery = time.Second     // the files are looked at no more often
	settled   = 2 * time.Second // a file that was changed less than this ago may change again within its time stamp
)

// reloader keeps a value that is made of files, and makes it anew when their content changes.
type reloader[T any] struct {
	files  Files
	make   func(contents) (T, error)
	log    *slog.Logger
	latest atomic.Pointer[T]
	looked atomic.Int64 // Unix time in nanoseconds

	mu    sync.Mutex // protects the fields below; held while files are read
	marks map[string]mark
	sum   [sha256.Size]byte // of the content of the value
	fails int               // looks in a row that found what cannot be used
	told  string            // the latest complaint
}

// contents is what the files hold, by path.
type contents map[string][]byte

// mark tells without reading whether a file has changed.
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

// current returns the value, which is looked after first when the latest look is a second ago.
func (r *reloader[T]) current() *T {
	if now, last := time.Now().UnixNano(), r.looked.Load(); now-last >= int64(lookEvery) || now < last {
		if r.looked.CompareAndSwap(last, now) { // the others go on with what there is
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

// tell writes about content that cannot be used, once for each. The first look in a row says nothing: somebody may be replacing one file
// after the other. The caller holds mu.
func (r *reloader[T]) tell(err error) {
	if r.fails++; r.fails > 1 && r.told != err.Error() {
		r.told = err.Error()
		r.log.Error(fmt.Sprintf("TLS: the files have changed and cannot be used, what was there before stays in use: %v", err))
	}
}

// look marks the files.
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

// changed tells whether the files may have other content than those marked last. The caller holds mu.
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

// read makes a value of the files, unless fresh is false: they hold what they held when they were read last. The caller holds mu.
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
