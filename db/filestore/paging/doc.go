// Package paging keeps long scans of a bbolt file from pushing the pages that clients read often
// out of memory, and keeps the pages that clients read often there at all.
//
// bbolt reads its file through a map of it in memory. A page that is not in memory is read from the
// disk when it is touched, and the system makes room for it by giving up another one. When the file
// is larger than memory, two things go wrong:
//
//   - A scan touches every page of the file once. Each page takes the place of another one, which
//     may be one that clients read all the time. Passages mend this, see Walk.
//   - bbolt maps the file with MADV_RANDOM, so that a touch reads one page and not megabytes around
//     it. Since version 6.3, Linux takes the advice to mean that nothing will be read again. It
//     does not look at which pages of such a map were touched, and gives them up in the order in
//     which they came. Of a hot set that takes half of the accesses and 40 % of the memory, every
//     third access reads the disk. A Mirror mends this.
//
// A third thing is none of the system's doing: a lookup in blocks may read two leaves, see
// Mirror.Guess.
//
// # Scans
//
// A Walk watches a cursor on its way through a bucket. While a scan is short the Walk only compares
// page numbers. When a scan has passed many leaves, whatever the name of its command, the Walk goes
// ahead of the cursor through the branch pages, and learns which leaves come next:
//
//	leaves      … 51  52  53  54  55  56  57  58  59  60  61 …
//	                   ▲   └───── the next ones ─────┘
//	                 cursor   in memory:  54  58
//	                          not yet:    53  55  56  57  59     asked for now, given back later
//
// The system tells which of them are in memory (mincore). The others are read by the scan, so the
// system is asked for all of them at once (MADV_WILLNEED), which a disk does several times as fast
// as one after the other. When the scan is some megabytes further these pages, and no others, are
// given back (MADV_PAGEOUT). So a scan of any length takes about keep pages of memory, and the
// pages that were there before it are there after it.
//
// A page that a client reads between the two is given back too, unless the client read it through
// a Mirror: the system gives up no page that is mapped twice. Otherwise the client's next read
// fetches the page again.
//
// A scan of the whole database comes in many calls: a cursor of a client takes a record at a time,
// each in a transaction of its own. Passages remember at which leaf a scan stopped. The next call
// that steps from that leaf to another one goes on with the same Passage.
//
// The system is not asked for pages of which nobody knows whether the scan reads them: those of
// values that take many pages, which a scan for keys leaves out, and the leaves in which the
// lookups of a count may begin. The scan has brought those of them that were not in memory before
// and are there afterwards.
//
// What is remembered between two transactions are numbers of pages, never addresses. A page may
// have another content by then, because a checkpoint has used it again: giving it back costs a read
// of the disk, and nothing else. Addresses are made from the map of an open transaction, which
// bbolt does not replace, and pages beyond the end of the transaction are left alone.
//
// Rejected: reading the pages of scans with O_DIRECT into memory of our own. File systems differ in
// whether they take it, and what is in memory anyway would be read once more; and bbolt's cursor
// reads from the map. Rejected too: MADV_COLD, which only moves pages to the end of a list that
// Linux gives up in that order anyway, behind the pages that were there before.
//
// Where the system knows none of these calls, or refuses them, nothing is given back and everything
// else is as it was.
package paging
