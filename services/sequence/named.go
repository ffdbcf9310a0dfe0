package sequence

import (
	"errors"
	"fmt"
	"sync"
)

// MaxNames is how many sequences, and how many quotas, one server keeps.
const MaxNames = 65536

// maxNameSize is the longest name of a sequence or quota in bytes.
const maxNameSize = 255

var (
	errTooMany  = fmt.Errorf("more than %d names", MaxNames)
	errLongName = fmt.Errorf("a name is longer than %d bytes", maxNameSize)
)

// named keeps one T per name. It opens a T when its name is first used; create allows names that
// were never used before.
type named[T any] struct {
	open func(name string, create bool) (T, error)

	mu sync.RWMutex // protects of
	of map[string]T
}

func newNamed[T any](open func(name string, create bool) (T, error)) *named[T] {
	return &named[T]{open: open, of: map[string]T{}}
}

func (n *named[T]) get(name []byte, create bool) (T, error) {
	n.mu.RLock()
	found, ok := n.of[string(name)]
	n.mu.RUnlock()
	if ok {
		return found, nil
	}
	return n.add(string(name), create)
}

func (n *named[T]) add(name string, create bool) (t T, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if found, ok := n.of[name]; ok {
		return found, nil
	}
	if len(name) > maxNameSize {
		return t, errLongName
	}
	if len(n.of) >= MaxNames {
		return t, errTooMany
	}
	if t, err = n.open(name, create); err == nil {
		n.of[name] = t
	}
	return t, err
}

// all calls do for each T and joins the errors.
func (n *named[T]) all(do func(T) error) error {
	n.mu.RLock()
	defer n.mu.RUnlock()
	var errs error
	for _, t := range n.of {
		errs = errors.Join(errs, do(t))
	}
	return errs
}
