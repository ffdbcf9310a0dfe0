// Package memstore holds the records of in-memory databases, outside of the garbage collector's
// sight.
//
// There are three kinds:
//   - Hash, for ":" and "-": a hash table with the records in an order that only the process knows.
//   - Cache, for "*": a Hash with a capacity; the least recently used records make room for new
//     ones.
//   - Tree, for "%" and "+": a B+tree in key order. Package filestore keeps its overlays in Trees,
//     too.
//
// Records and index live in a slab.Arena. A record costs its key and value bytes, two to six bytes
// for their lengths, the rounding of the allocator (6 % on average) and 10 to 13 bytes of index
// (Tree: 6).
//
// Each store has one writer at a time and any number of readers. A writer makes readers wait for a
// short time only: it allocates and fills the memory of new records before it takes the readers'
// lock. The essay in frozen.go explains how a store shows its records as of an instant while
// updates go on.
//
// Lock order: writer -> tables or slots in ascending order -> frozen.mu.
//
// The files stand above each other, and lint checks that none needs a file above it:
//
//	hash.go  cache.go  treestore.go                stores, each with frozen views
//	frozen.go, frozen_scan.go                      records as they were at an instant
//	plan.go  batch.go  tree_delete.go  tree_read.go  updates made ready; the rest of a tree
//	warm.go                                        what many keys will look at, fetched at once
//	index.go        tree.go                        records in tables; a tree and its changes
//	table.go        page_split.go                  slots by hash; a page that has become too large
//	large.go                                       large values, copied while nothing is locked
//	page.go                                        pages, their slots and entries
//	package slab                                   blocks of memory
//
// A set into a tree passes tree.go, page.go, and slab.go of package slab. The other files are for
// pages that split, for large values, and for readers.
package memstore
