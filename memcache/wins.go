package memcache

import "sync"

// maxWins is how many versions wins remembers.
const maxWins = 1 << 16

// wins remembers for which version of an item a client has been told to compute the item anew (meta
// flags N and R). One client wins; others are told that a client has won. It is in memory only:
// after a restart another client may win.
type wins struct {
	mu    sync.Mutex // protects given
	given map[string]uint64
}

// first reports whether the caller is the first to ask for this version of the item.
func (w *wins) first(key []byte, version uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.given[string(key)] == version {
		return false
	}
	if w.given == nil || len(w.given) >= maxWins {
		w.given = map[string]uint64{}
	}
	w.given[string(key)] = version
	return true
}

// taken reports whether a client has won this version of the item.
func (w *wins) taken(key []byte, version uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.given[string(key)] == version
}
