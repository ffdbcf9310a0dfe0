package filestore

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore/paging"
)

// A copier writes the copy of a file, in pieces. A piece is one transaction of the copy, and one
// read transaction of the file, so that the file can reuse its pages in between.
type copier struct {
	c        *Compaction
	sys      *disk
	read     func(func(tx *bolt.Tx) error) error // reads the file that is copied
	to       *bolt.DB
	passages *paging.Passages // of the file that is copied
	f        *os.File         // of to
	path     string           // of to
	valid    func() error
	runs     map[string]bool // that are copied

	piece    int64 // bytes of the next piece
	unsynced int64 // bytes since the last sync
	synced   int64 // bytes of the file up to which pages were given back
	giveBack bool  // the file is large: its pages shall not stay in memory
	hurry    bool  // without rests: others wait
}

const (
	leastPiece = 64 << 10
	firstPiece = 512 << 10
	mostPiece  = 8 << 20
	askTime    = 64       // entries between two looks at the clock
	syncBytes  = 16 << 20 // are copied between two syncs, so that the last one is short
)

// after adapts the size of the next piece to the time that this one took, has the disk write what
// is there, looks at the room, and rests for as long as the piece took.
func (p *copier) after(size int64, took time.Duration) error {
	if size > 0 && (size >= p.piece || took > pieceTime) {
		wanted := int64(float64(size) * float64(pieceTime) / float64(max(took, time.Millisecond)))
		p.piece = min(max((p.piece+wanted)/2, leastPiece), mostPiece)
	}
	if p.unsynced += size; p.unsynced >= syncBytes {
		if err := p.room(0); err != nil {
			return err
		}
		begun := time.Now()
		if err := p.sync(); err != nil {
			return err
		}
		took += time.Since(begun)
	}
	if p.hurry {
		return p.sys.step("last piece")
	}
	if err := p.sys.step("piece"); err != nil {
		return err
	}
	return p.c.rest(took)
}

// sync has the copy written down to the disk. Pages of a large copy are given back then: they would
// push out pages that are read all the time.
func (p *copier) sync() error {
	if err := p.sys.sync(p.to); err != nil {
		return fmt.Errorf("sync %s: %w", p.path, err)
	}
	p.unsynced = 0
	if info, err := p.f.Stat(); err == nil && p.giveBack {
		dropPages(p.f, p.synced, info.Size()-p.synced)
		p.synced = info.Size()
	}
	return nil
}

// room returns an error when the disk has less room than so many bytes and those that shall stay
// free.
func (p *copier) room(needed int64) error {
	_, free, err := p.sys.space(filepath.Dir(p.path))
	if err != nil {
		return err
	}
	if keep := p.c.opts.keep(); free < needed+keep {
		const mib = 1 << 20
		return fmt.Errorf("compact the file: %s needs about %d MiB, and %d MiB shall stay free, but %d MiB are free: %w",
			p.path, (needed+mib-1)/mib, keep/mib, free/mib, syscall.ENOSPC)
	}
	return nil
}
