// Package run keeps sorted entries in blocks inside a bbolt file: runs, which are lists of updates
// that do not change, and the packed records below them.
//
// A checkpoint that brings half a million updates of random keys into a file of 16 million records
// rewrites a page of 4 KiB for nearly each of them. A run takes the same updates in order, in
// blocks without gaps, and costs about the bytes that it holds. When runs have collected several
// updates for each page of the file, one walk through the packed records brings in the updates of
// all runs (Editor).
//
// A run is a bucket inside the file, and so appears, disappears and is synced with the transactions
// of the file:
//
//	bucket "runs"
//	  bucket NUMBER           8 bytes, big-endian; of two runs the greater number is the newer
//	    0x00                  Info, fixed size; a run without it was not finished, and is ignored
//	    0x01                  Filter
//	    0x03 ‖ last key       a block: entries up to the last key, in order
//	    0x05 ‖ key            the flagged value of an entry that is too large for a block, and its
//	                          checksum
//
//	bucket "packed"
//	    0x04 ‖ last key       a block
//
// An entry of a run is a key and its flagged value: the bytes that an overlay keeps for a key
// (package filestore). A packed record is a key and its value. Package run looks at none of them.
//
// A block and its key fill half a page of the file, so that a lookup reads one page, and two where
// bbolt keeps three or four blocks together ("Full pages" in editor.go says how few). A block:
//
//	┌─────────┬───┬─────────┬─────────────────┬─────────────────────────┬───┬──────────┐
//	│ entry 0 │ … │ entry n │ 0 … ends of all │ where each entry begins │ n │ checksum │
//	└─────────┴───┴─────────┴─────────────────┴─────────────────────────┴───┴──────────┘
package run
