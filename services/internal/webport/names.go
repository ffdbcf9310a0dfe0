package webport

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/pages"
)

const (
	// MaxNames is how many sequences, and how many quotas, one server keeps.
	MaxNames = 65536
	// MaxNameSize is the longest name of a sequence or quota, in bytes.
	MaxNameSize = 255
)

var (
	errTooMany  = fmt.Errorf("more than %d names", MaxNames)
	errLongName = fmt.Errorf("a name is longer than %d bytes", MaxNameSize)
)

// Named keeps one T for each name that has been used since the start.
type Named[T any] struct {
	open func(name string, create bool) (T, error)

	mu sync.RWMutex // protects of
	of map[string]T
}

// NewNamed returns a Named without names. open opens the T of a name when the name is first used;
// create allows names that have no records.
func NewNamed[T any](open func(name string, create bool) (T, error)) *Named[T] {
	return &Named[T]{open: open, of: map[string]T{}}
}

// Get returns the T of a name.
func (n *Named[T]) Get(name []byte, create bool) (T, error) {
	n.mu.RLock()
	found, ok := n.of[string(name)]
	n.mu.RUnlock()
	if ok {
		return found, nil
	}
	return n.add(string(name), create)
}

func (n *Named[T]) add(name string, create bool) (t T, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if found, ok := n.of[name]; ok {
		return found, nil
	}
	if len(name) > MaxNameSize {
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

// All calls do for each T and joins the errors.
func (n *Named[T]) All(do func(T) error) error {
	n.mu.RLock()
	defer n.mu.RUnlock()
	var errs error
	for _, t := range n.of {
		errs = errors.Join(errs, do(t))
	}
	return errs
}

// Len returns the number of names that have been used.
func (n *Named[T]) Len() int {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return len(n.of)
}

// Records are the records of the services' database as sequences and quotas use them.
type Records struct{ *db.DB }

// NewRecords refuses a database that does not survive the process.
func NewRecords(d *db.DB) (Records, error) {
	if d == nil || !d.Info().OnDisk {
		return Records{}, errors.New("sequences and quotas need a database file to keep their records in")
	}
	return Records{d}, nil
}

// Value returns the value of a record, nil if there is none. It does not wait until the record is
// safe, because quotas read under their locks. A reply that shows the value has to wait (DB.Seen);
// an update that is based on the record cannot be safe before the record is.
func (r Records) Value(key []byte) ([]byte, error) {
	value, _, err := r.Get(new(db.Pending), nil, key)
	if errors.Is(err, dberr.ErrNoRecord) {
		return nil, nil
	}
	if value == nil {
		value = []byte{}
	}
	return value, err
}

// Words returns the distinct words that stand between prefix and the next zero byte in the keys, at
// most limit. It jumps from word to word. Like Value, it does not wait until the records are safe.
func (r Records) Words(prefix []byte, limit int) ([]string, error) {
	var words []string
	after := prefix
	for len(words) < limit {
		page, err := pages.Of(r, new(db.Pending), pages.Options{Prefix: prefix, After: after, Records: 1, Examine: 1})
		if err != nil || len(page.Records) == 0 {
			return words, err
		}
		word, _, _ := bytes.Cut(page.Records[0].Key[len(prefix):], []byte{0})
		words = append(words, string(word))
		after = append(append(bytes.Clone(prefix), word...), 1)
	}
	return words, nil
}
