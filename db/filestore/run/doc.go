// Package run keeps sorted, unchanging lists of updates inside a bbolt file.
//
// A checkpoint that brings half a million updates of random keys into a file of 16 million records
// rewrites a page of 4 KiB for nearly each of them. A run takes the same updates in order, in
// blocks without gaps, and costs about the bytes that it holds. When runs have collected several
// updates for each page of the file, one walk through the pages brings in the updates of all runs.
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
// An entry is a key and its flagged value: the bytes that an overlay keeps for a key (package
// filestore). Package run looks at none of them.
//
// A block and its key fill half a page of the file, so that a lookup reads one page. A block:
//
//	┌─────────┬───┬─────────┬─────────────────┬─────────────────────────┬───┬──────────┐
//	│ entry 0 │ … │ entry n │ 0 … ends of all │ where each entry begins │ n │ checksum │
//	└─────────┴───┴─────────┴─────────────────┴─────────────────────────┴───┴──────────┘
package run
