package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gotycoon/internal/vfs"
)

// A seal ends the past. A member that is sealed for a term stores, acknowledges and begins nothing
// of an earlier term any more, also after a restart. What it has then is final until a primary of
// that term, or a later one, is followed.
//
// That is what makes a takeover safe. An update was acknowledged when R followers had it besides
// the primary of its term. Of N members with data, N − R are sealed before the next primary is
// chosen, or the former primary is among them. So at least one of the sealed has the update, and
// the one that has most becomes the primary.
//
//	N = 3, R = 1    update u is on a (primary) and b; a dies
//	                sealed: b and c; b has more, and becomes the primary
//	                had c alone been sealed, nobody would know of u: there is no takeover then
//
// A seal is on the disk before anybody hears of it.

// seal seals this member for a term and says what it has. A primary of an earlier term steps down
// first of all, whatever else waits for its disk.
func (n *Node) seal(ctx context.Context, term uint64) (Inventory, error) {
	if n.opts.Witness {
		return Inventory{}, errors.New("a witness has no data")
	}
	if err := n.endBefore(term); err != nil {
		return Inventory{}, err
	}
	if err := n.beginWork(ctx); err != nil {
		return Inventory{}, err
	}
	defer n.endWork()
	if err := n.sealWorking(term); err != nil {
		return Inventory{}, err
	}
	has, err := n.inventory()
	n.mu.Lock()
	defer n.mu.Unlock()
	has.Leaving = n.leaving
	return has, err
}

// endBefore ends what this member does as the primary of an earlier term than the given one.
func (n *Node) endBefore(term uint64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if newest := max(n.sealed, n.elector.State().Term); term < newest {
		return fmt.Errorf("the term %d is over, since a member leads term %d", term, newest)
	}
	if n.term < term {
		n.stepDown(fmt.Errorf("a member leads term %d", term))
	}
	return nil
}

// inventory returns what this member has. work is held.
func (n *Node) inventory() (Inventory, error) {
	has, err := n.opts.Data.Inventory()
	has.Begun = n.begun
	return has, err
}

// sealWorking seals this member. work is held.
func (n *Node) sealWorking(term uint64) error {
	if err := n.endBefore(term); err != nil { // work was waited for
		return err
	}
	if term > n.sealed {
		if err := n.seals.write(term); err != nil {
			return err
		}
	}
	n.mu.Lock()
	n.sealed = max(n.sealed, term)
	already := n.term >= term && n.role != Waiting
	n.mu.Unlock()
	if already {
		return nil // it is of this term
	}
	ctx, cancel := context.WithTimeout(n.ctx, haltTimeout)
	defer cancel()
	if err := n.opts.Data.Halt(ctx); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.become(Waiting, max(n.term, term))
	return nil
}

// termFile keeps a term: a decimal number. The file "seal" has the newest seal, "begun" the newest
// term that this member has begun as the primary.
type termFile struct {
	fs        vfs.FS
	dir, name string
}

func (f termFile) path() string { return filepath.Join(f.dir, f.name) }

// read returns 0 where there is no file.
func (f termFile) read() (uint64, error) {
	text, err := vfs.ReadFile(f.fs, f.path())
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	term, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is damaged: remove this member from the cluster, and add it again with an empty directory", f.path())
	}
	return term, nil
}

// write replaces the file. A crash leaves the old term or the new one.
func (f termFile) write(term uint64) error {
	return vfs.WriteFileAtomic(f.fs, f.path(), []byte(strconv.FormatUint(term, 10)+"\n"))
}
