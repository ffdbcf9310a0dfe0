package filestore

import (
	"sync/atomic"

	"gotycoon/db/store"
)

// view is what a reader sees in front of the file. The pair never changes; a freeze and the end of a checkpoint
// replace the whole view. Overlays give their memory back when the last view that has them is released.
type view struct {
	active *overlay
	frozen *overlay // being checkpointed; nil most of the time

	refs atomic.Int64 // readers plus one while the view is current; 0 is final
}

func newView(active, frozen *overlay) *view {
	v := &view{active: active, frozen: frozen}
	v.refs.Store(1)
	active.refs.Add(1)
	if frozen != nil {
		frozen.refs.Add(1)
	}
	return v
}

// acquire returns the current view. The caller must release it, soon.
func (s *Store) acquire() *view {
	for {
		v := s.view.Load()
		for n := v.refs.Load(); n > 0; n = v.refs.Load() {
			if v.refs.CompareAndSwap(n, n+1) {
				return v
			}
		}
	}
}

func (v *view) release() {
	if v.refs.Add(-1) > 0 {
		return
	}
	v.active.release()
	if v.frozen != nil {
		v.frozen.release()
	}
}

// state of a key in a view.
type state int

const (
	unknown state = iota // not in the overlays: the file decides
	live                 // present
	dead                 // removed, or hidden by a clear
)

// get looks a key up in both overlays, the newer one first.
func (v *view) get(dst, key []byte, r store.Reader) ([]byte, state, error) {
	dst, st, err := v.active.get(dst, key, r)
	if st == unknown && v.frozen != nil {
		return v.frozen.get(dst, key, r)
	}
	return dst, st, err
}
