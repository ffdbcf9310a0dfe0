// Package pg is the engine over PostgreSQL, version 13 or later: databases that several servers
// share live in the schema gotycoon of a PostgreSQL database.
//
// schema.sql and table.sql have the tables and the functions in them, with the reason of each. All
// changes of records are made by these functions, one call for a group, so that a group takes one
// round trip, and its locks no longer than that.
//
// # Why READ COMMITTED
//
// Each change is blind, or conditional on a revision that is looked at under the record's lock, so
// stronger levels would add nothing but conflicts. Records are locked in ascending order, and
// behind the lock of their database, so groups never deadlock.
//
// # Locks
//
// A group has the advisory lock of each of its databases, shared. A transaction of a script and a
// clear have it exclusively. A claim only tries for it: connections that wait would be missing for
// the commit of that transaction. The other advisory locks (locks.go) have to do with stamps, see
// the function stamp and Engine.horizon.
//
// # Connections
//
// Groups, reads and all the rest have pools of their own (open.go). A call whose context ends
// closes its connection, and tells PostgreSQL to stop; the outcome of a group is then unknown, and
// Settle finds out. Of several hosts in the URL the one is taken that is no standby. After a
// failover the old connections fail, and new ones lead to the new primary.
//
// # Lanes
//
// The table writers has whose each lane is. The note of each group is made out of the lane's row
// there, see the function note in schema.sql. Why that is enough, also after PostgreSQL was
// restored to the past, is in "Lanes and the past" of package engine. It takes for granted that
// there is one primary at a time, and that rows of writers only go with all the rest.
//
// # Against the design
//
// Counts are rows of deltas that are folded into one, and not a column of groups: the count is then
// exact in every snapshot, and a clear need not know what was folded.
//
// The horizon asks for locks rather than for pg_stat_activity, which hides the transactions of
// other roles and would also count those that have no stamp.
//
// A claim belongs to a term of a lease, and not to a lane, see package engine.
//
// The body of a group has the updates of losers too; readers leave them out.
package pg
