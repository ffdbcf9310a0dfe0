// Package rebuild makes and checks database files while no server has them open.
//
//	Builder  makes a file beside its name and renames it into place: sorted records are written
//	         page after page, others are sorted first, in memory and in a file that has no name
//	File     reads a file in order, without trusting it
//	Check    looks at every page of a file
//	Salvage  hands out every record of a damaged file that can be read
//
// Files are read and written without bbolt. bbolt maps a file into memory, and the process that
// reads a missing page dies; and it writes pages in random order, through a transaction that has to
// fit in memory. The format is drawn in layout.go.
package rebuild
