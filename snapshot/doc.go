// Package snapshot keeps databases in files: all records of a database at an instant, with the time stamp of that instant, as the
// original server writes and reads them (reference section 3).
//
// Writer and Reader are the codec. Options.Write puts a snapshot in the place of an older one such that one of both is always there,
// and List finds those in a directory. Nothing here knows what a database is; see Source.
//
// Beside the server's format (.ktss) there is the one of the command line tools (dump and load): NewDumpWriter, and a Reader tells
// both apart by how they begin.
package snapshot
