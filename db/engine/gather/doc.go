// Package gather carries out operations of many callers on an engine in groups: what arrives while
// a group is under way is the next group. One round trip, one transaction and one write to the disk
// of the engine then serve hundreds of operations. Reads gather in the same way.
//
// # A group
//
// An Operation names its keys and has a body, which reads and changes them through a View. A lane
// takes what waits (at most 512 operations and 4 MiB) and
//
//  1. reads the keys that bodies want to read, in one request; none for blind operations, nor for
//     records that it knows;
//  2. runs the bodies, one after the other, each on what the ones before have left, so that ten
//     increments of one key become one change with ten updates;
//  3. writes the changes, each on the condition that its record is still the one that was read;
//  4. answers the callers. Operations on a key whose change has lost against another server go to
//     the front of the next group.
//
// An operation is answered when the engine has made its changes, so a caller finds what it has
// written, at whatever server it looks.
//
// # Bodies
//
// The lane says whose turn it is, and the body runs in the goroutine of its caller while the lane
// waits. That costs two switches of goroutines, less than a microsecond, and saves more: what
// belongs to the caller's goroutine, such as an interpreter of Lua or an account of memory, stays
// there; a panic ends the caller's request and not the lane; and since nobody keeps a body, its
// variables need no memory of the heap, which a database that has no engine would pay for as well.
// An operation that reads nothing can do without a body (Operation.Updates).
//
// # Lanes
//
// Operations on one key go to one of a few lanes by the hash of the key. So two of them on the same
// key hardly ever compete in different groups of this server. Each lane writes one group at a time.
//
// How many lanes are used follows from the groups. Each has a price of its own in the engine (a
// statement, a note, a commit), so one lane with groups of 64 needs two thirds of the processor
// that two lanes with groups of 32 do; but one lane keeps at most one processor of the engine busy.
// A lane is added when groups have become so large (128) that the price does not matter any more,
// and given up again when they are small. After such a change an operation may meet another one on
// its key in another lane: then the conditions decide, as between servers. DoAll keeps to one
// number.
//
// Everything else has one lane of its own, the broad one: operations on several keys (which are
// made as a whole), clears, and groups with a guard or a position. To the other lanes it is as
// another server: the conditions decide who wins, and nobody in this process waits for anybody.
// So nothing can deadlock here. In the engine groups lock their keys in ascending order.
//
// The order of operations on one key is kept for whoever can tell: a caller gets its answer before
// it begins its next operation, and callers who do not wait for each other have no order. Do must
// therefore stay a call that waits. DoAll brings many operations of one caller at once, but only
// such on one key, whose lane is a queue: who loses goes back in front of those behind.
//
// Rejected: an operation on several keys stops the lanes of its keys, in ascending order, and then
// goes alone. That cannot deadlock either, and never loses against its own server. But with two
// lanes every second operation on two keys stops all writes of the server for a round trip or two,
// be its keys hot or not. In the broad lane it costs the others nothing unless they meet on a key.
//
// # Records that are known
//
// A lane keeps the records that operations have read and changed lately, such as counters, and
// assumes that they are what its last group has made of them. That saves the engine a quarter of an
// increment, and the group a round trip. The condition of the change finds out whether it was so:
// if another server, or another lane, was there meanwhile, the operation loses and then reads.
// Nothing checks what an operation says that changes nothing (a record is there already, a
// comparison fails), so it is put back and reads. Such an answer is also right when another
// operation of the group then changes the record, because the condition of that change counts for
// both.
//
// Guesses that go wrong cost more than a read. So a lane has a credit of right guesses, each wrong
// one costs a hundred, and without credit it reads everything, and compares. Where servers change
// the same records all the time they soon stop guessing.
//
// What a lane knows are groups of its own, with revisions that nobody else can have given a record,
// even if the engine was taken back to the past meanwhile: see "Lanes and the past" in package
// engine. So a guess does not grow old, and neither failed calls nor new connections change
// anything. With another number the lane forgets everything.
//
// # Whole groups
//
// Operations of the broad lane share groups too. Such a group is made as a whole, so that each of
// its operations is, and also looks at the records which were only read (engine.Change.Keep). If it
// loses, all of its operations try again in a group of half the size; groups that win let the size
// grow again. So a hot key slows down those who use it, and soon nobody else. Also a group that the
// engine refuses, or has no room for, is halved until the culprit is alone.
//
// # Nobody starves
//
// An operation that has lost three times goes first, with others like it alone, and its keys are
// held in the engine between read and write. A held group cannot lose. All keys of all operations
// of the group are held, blind ones included, because the group must not wait for a key while
// others wait for those that it holds.
//
// # A database that somebody has alone
//
// A transaction of another server, or a clear, has a database alone, and groups that change it
// would wait in the engine, with all others behind them. So a lane's groups do not wait
// (Group.NoWait). When the engine answers that a database is locked, the lane gives its tasks of
// that database to a late lane, which there is one of for each such database, and goes on with the
// others. The late lane does wait, in the engine's own order, so that it gets its turn however many
// transactions follow each other; and it holds the keys from then on, so that it does not lose what
// it has waited for. After its first group the rest goes back to the lanes that it came from, in
// front of what they have.
//
// While a late lane has tasks, those that come for its database join them: an update must not
// overtake another one of its key that its caller has brought before (DoAll).
//
// An operation that waits for a transaction for too long is told so. Meanwhile the late lane asks
// the engine every second whether it is there, so that nobody takes the wait for an outage.
//
// Rejected: to wait until the database is free and then to try again. With a few clients that run
// scripts all the time it never is.
//
// # Outcomes that nobody knows
//
// After Unknown the lane asks the engine (Settle) until it knows, and does nothing else: a group
// that arrives late must not meet a later one of its lane. Callers who cannot wait so long are told
// that the update may have been made. A caller who leaves is never called back: its body does not
// run any more, and what the lane still needs was copied.
//
// # An engine that does not answer
//
// A call that fails is tried again with growing pauses, until the operations have waited for the
// time that Options.Timeout says. When the first of them has waited that long without any answer
// from the engine, all are refused, and new ones at once, until a probe, sent every 100 ms, is
// answered.
package gather
