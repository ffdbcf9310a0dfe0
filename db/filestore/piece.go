package filestore

import (
	"time"

	"gotycoon/db/filestore/run"
)

// # How large a piece of a merge is
//
// A piece has as many entries as take about pieceTime. Where more than a quarter of its bytes would
// be the transaction's own, a piece takes up to longPiece times longer: each commit writes the list
// of free pages anew, and the list has up to 5 MB in a file of 10 GB. With pieces of pieceTime a
// slow machine wrote a quarter more for each update than a fast one.

const (
	pieceTime  = 40 * time.Millisecond // of a transaction of a merge
	longPiece  = 4                     // a piece takes so many times longer at most to write less of its own
	ownShare   = 3                     // times what a transaction writes of its own, it should write of records
	pieceLeast = 2000                  // entries, however slow the disk is
)

// A piece is what one transaction of a merge has brought into the bottom.
type piece struct {
	entries int
	bytes   int64 // of the updates
	records int64 // bytes of blocks and of large records
	own     int64 // bytes of all pages written beside them: free pages, branches, room in pages
	last    bool  // there are no more entries
}

// A merger is the state of a merge that the file does not have. It is guarded by runMu of the
// checkpointer.
type merger struct {
	entries int        // of the next piece
	edit    run.Editor // has the memory of blocks
	turn    int        // counts pieces: whose turn it is in dropPassed
	whole   uint64     // Meta.MergeRun of a merge that began in this process
}

// learn adapts the size of a piece to the time that the last one took, and to what the transaction
// wrote of its own.
func (g *merger) learn(p piece, took time.Duration) {
	if p.entries == 0 || p.entries < g.entries && took < pieceTime {
		return // a run was dropped, or these are the last entries of the merge
	}
	fits := float64(pieceTime) / float64(max(took, time.Millisecond))
	pays := ownShare * float64(p.own) / float64(max(p.records, 1))
	wanted := int(min(float64(p.entries)*max(fits, min(pays, fits*longPiece)), batchEntries))
	g.entries = min(max((g.entries+wanted)/2, pieceLeast), batchEntries)
}
