// Package primary decides which of several servers that replicate each other serves what only one of them may: quotas, and the fencing
// tokens of locks. Their records are in the services' database, which the others keep a copy of.
//
//	role, err := primary.Open(primary.Options{DB: catalog.Services(), SID: 1})
//	err = role.Attach(locks)     // is told when this server becomes the primary, and when it is it no more
//	err = role.Alone()           // there is no master; or, with one,
//	err = role.CaughtUp()        // everything that it had is here
//	term, err := role.Term()     // err says why this server is not the primary
//	err = role.Claim(false)      // makes it the primary
//
// A server becomes the primary by a claim: a number greater than those of all claims that it knows of, in a record that the others receive. The
// greatest claim counts; while two are equal, nobody is the primary. A server without a master that knows of no claim makes one by itself.
// Otherwise somebody has to say so: that the primary is gone is nothing that another server could find out by itself.
//
// What arrives from other servers comes in by Prepare and Follow. Three kinds of records are told apart by their keys, see records.go: those
// that one server writes and that only grow, of which the greater value is kept; those of the primary; and claims, which are of the first
// kind and looked at before they are stored.
//
// A primary that learns of a greater claim ends its services before it stores anything of the new one's. What it had done that the new
// primary never got, and what others had received of that, is made undone by a copy of the master's database (Prepare's refresh).
package primary
