// Package ulog keeps the update log: every change to every database, in one order, in files that
// the original server reads and writes too.
//
// # A log on disk
//
// A log is a directory of segments, 0000000001.ulog and up. A segment is a header of 17 bytes and
// records behind it (format.go). Only the newest segment is written. When it has reached
// Options.Limit it is synced, and the next group of records begins a new segment.
//
// Records are written in groups: a group is what was appended while the previous group was being
// written. Behind the records of a group stands its commit record, with a checksum; to the original
// it is an update of a database that does not exist. A group counts as a whole or not at all, and
// one Append is always inside one group. In front of updates that another server has made, in the
// same group, stands a position record: it says where the updates were made, and what this server
// remembers about the server that it follows (position.go). Position records are invisible to the
// original in the same way. A segment of ours begins with a commit record of zero records, so that
// it can be told from a segment of the original. Behind the records of the newest segment there may
// be zeros, into which the next groups are written (room.go).
//
// The header holds a size and a stamp. The size says how much of the segment was synced when the
// header was written; it may lag behind the segment, but never leads. The stamp is the larger of
// two: the stamp of the last record below the size, and the newest stamp that followers were
// promised (promise.go). Bad bytes below the size are damage: Open refuses the log, and a Reader
// returns a *DamageError. Bad bytes behind the size in the newest segment are what a crash leaves
// of a group that was never acknowledged: Open copies them to a file 0000000001.ulog.torn-… and
// cuts them off the segment. Records below the size that no commit record follows were appended by
// the original and are accepted.
//
// Beside the segments the directory holds gotycoon.id, the identity of the log, and gotycoon.holds,
// if somebody has asked for a hold that outlasts the process (lasting.go). A file
// 0000000002.ulog.new is a segment that is being begun, and value-1.ulog.new holds a large value
// that is written before its update is appended (ahead.go). After a crash the next Open removes the
// .new files.
//
// # Assumptions about the disk
//
// What was written before a successful Sync survives a power cut. Of what was written after it any
// blocks of 512 bytes may survive, and the size of the file. 17 bytes at the start of a file are
// written as a whole. A failed Sync says nothing about what survives, which is why a Log ends at
// its first failed write or Sync and never tries again.
//
// # Life of an update
//
// Append gives the update a stamp and encodes it into memory. Wait makes sure that it is written:
// the first goroutine that waits writes everything appended so far with one write, and one Sync
// with Options.SyncEach, while the other goroutines sleep (see Leadership in commit.go). A Reader
// sees an update when Wait would return. The value of a large update may be written before Append,
// with WriteAhead.
//
// # Where to read
//
// A file needs only files that stand below it here, or beside it; an arrow points to what is
// needed. internal/lint checks that the files form no cycle.
//
//	open, end        begin.go → prepare.go → heads.go (segments that lost updates);  flush.go (Close)
//	read             tail.go (readers at the end), walk.go (Next) → gap.go → reader.go
//	remove           prune.go → retention.go (what a removal obeys, limits) → files.go
//	promised stamps  promise.go
//	write            commit.go (who writes, who waits) → ahead.go → early.go, sync.go (fsync,
//	                 header, next segment) → room.go;  append.go (a stamp, a record in memory)
//	the Log          log.go
//	on the disk      folder.go (the directory) → scan.go (which records count) → window.go;
//	                 zeros.go (where the records end)
//	in memory        newest.go (groups for readers) → group.go (pending records, a group);
//	                 lasting.go (holds that outlast the process) → holds.go (who needs which segments)
//	bytes            segment.go (header, name) → position.go (followed servers) → format.go
//	settings         options.go
//
// An update passes through append.go, format.go, group.go, commit.go and sync.go, in this order.
// The other files are about what is rare.
//
// # Rules
//
//   - A failed write or Sync is final: Log.fail ends the log, and nothing is acknowledged
//     afterwards.
//   - A group of records counts as a whole or not at all; one Append is always inside one group
//     (format.go).
//   - Stamps grow for ever: Open reads the last stamp from the end of the log, and the header keeps
//     what followers were promised beyond it (promise.go).
//   - A stamp that a follower was told is never given to an update that the follower lacks. Who
//     feeds a follower calls Log.Promise first, then sends everything up to the end of the log, and
//     only then tells the promised stamp.
//   - Stamps of updates that were received are smaller than those given out later
//     (Log.AppendReplicated, Log.Observe).
//   - A segment is removed when nobody needs it: files, snapshots, copies and followers hold what
//     comes after their stamps, and one look at all holds, under Log.mu, decides (holds.go). A weak
//     hold gives way when the disk is full, or when it would keep more than it may.
//   - A segment that is found empty, cut off or with a bad head is reported by the name of its file
//     when the log is opened, and is a gap for everybody who needs its updates (heads.go). No crash
//     leaves an empty segment behind.
//   - A Reader never passes over removed or damaged updates: Next returns a *GapError until SkipGap
//     (gap.go).
//   - A value that is written ahead becomes a segment only when all of it is on the disk: the old
//     segment is synced, then the file, then the file gets the segment's name (ahead.go).
//   - A value of Options.Ahead bytes or more is on the disk before its update gets a stamp, and no
//     lock is held while it is written.
//   - Each segment begins with how far this server has followed its master, and that is on the disk
//     before any update in the segment (repeatState in folder.go).
package ulog
