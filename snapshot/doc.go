// Package snapshot keeps databases in files: all records of a database at an instant, with the time
// stamp of that instant, in the format of the original server (drawn in format.go).
//
// Writer and Reader are the codec. Options.Write replaces a snapshot by a newer one; after a crash
// one of the two is there, whole. List finds the snapshots in a directory. The package knows
// databases only as a Source.
//
// Beside the server's format (.ktss) there is the format of the command line tools (dump and load),
// which NewDumpWriter writes. A Reader tells the two apart by their first bytes.
package snapshot
