package memcache

import "sync"

// maxWins bounds what is remembered of recaching clients.
const maxWins = 1 << 16

// wins says for which version of an item a client has been told to compute it anew (meta flags N and R): one wins, others are
// told that somebody has. It is in memory only; after a restart another one wins.
type wins struct {
	mu    sync.Mutex // protects given
	given map[string]uint64
}

// first tells whether the caller is the first to ask for this version of the item.
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

// taken tells whether somebody has won this version of the item.
func (w *wins) taken(key []byte, version uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.given[string(key)] == version
}
