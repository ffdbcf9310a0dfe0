package db

import (
	"sync/atomic"

	"gotycoon/db/dberr"
)

// guard says whether clients may update, see SetGuarded.
type guard struct {
	up  atomic.Bool
	why func() error // see OnRefusal; nil: as of a read-only database
}

// refusal returns what clients are told whose updates the guard refuses.
func (g *guard) refusal() error {
	if g != nil && g.why != nil {
		if err := g.why(); err != nil {
			return err
		}
	}
	return dberr.ErrReadOnly
}
