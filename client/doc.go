// Package client talks to a gotycoon or Kyoto Tycoon server.
//
//	c := client.New("localhost:1978", client.Options{Timeout: 5 * time.Second})
//	defer c.Close()
//	db := c.DB("")
//	err := db.Set(ctx, "japan", []byte("tokyo"), client.In(time.Hour))
//	value, err := db.Get(ctx, "japan")
//	for record, err := range db.All(ctx) { … }
//
// What there is, each with an example below:
//
//	New, DB         records, bulks, increments, cursors, signals, scripts, copies, administration
//	DB.Watch        what happens to the records of a database, as it happens
//	Client.Follow   the update log of a server
//	NewLocks        locks with fencing tokens
//	DialCounters    counters of resources that are in use
//	NewSequence     numbers that are given out once
//	NewQuota        amounts that are taken and given back
//
// A Client keeps connections, and many goroutines may use it; so with Locks, Sequence and Quota. A
// Cursor and Counters have a connection of their own and belong to one goroutine.
//
// The module needs nothing but the standard library; its tests need more.
//
// # Expiry
//
// A record lives for ever unless an Expiry says something else: the zero Expiry is Never, In and At
// return others. Each call that stores a value sets the expiry anew; Touch sets it alone, and TTL
// tells it. Servers count in whole seconds: durations and times are rounded up.
//
// # Contexts
//
// The end of a call's context ends the call, also while it waits or connects, and the error is the
// context's cause: errors.Is(err, context.DeadlineExceeded). A call whose context has no deadline
// has Options.Timeout. In Copy and FollowLog that limits each wait for the server instead.
//
// # Errors
//
// The errors of calls are *Error, and those of counters *CounterError; ErrQuota, ErrLockBusy,
// ErrLockLost and ErrNoLock stand for themselves. errors.Is tells:
//
//	ErrNoRecord             there is no such record, or the cursor is at the end
//	ErrDuplicate            Add: there is a record
//	ErrConflict             CAS, increments: the record is another than expected
//	ErrTimeout              no signal came in time
//	ErrDenied               credentials or rights are missing
//	ErrReadOnly             the server refuses updates, for example as a replica
//	errors.ErrUnsupported   the server does not know the call
//	ErrNetwork              there was no reply; then one of these two is true as well:
//	ErrNotSent                nothing has been done
//	ErrOutcomeUnknown         it may have been done, and only the reply was lost
//	ErrNoPrimary            of several servers none is the primary, so nothing was sent
//	ErrWrongServer          another kind of server answers
//	ErrGap                  Watch, Follow: the log does not have what is asked for any more
//	ErrLogChanged           Follow: the server has another log
//	ErrNoLog                Follow: the server has none, or does not let us follow
//	ErrNoCopy               Copy: the server is not gotycoon
//	ErrLockBusy             Acquire of Locks: not in time
//	ErrLockLost             the lock is not ours any more
//	ErrNoLock               Cancel of Locks: there is no such holder
//	ErrNoCounter            the counter has not been used lately
//	ErrNotAvailable         Acquire of Counters: others have too much
//	ErrNotAcquired          Release of Counters: more than was acquired
//	ErrQuota                Apply: too little remains; Cancel: no such journal
//	ErrNoQuota              there is no quota of that name
//
// With one server no call is sent twice: after an unknown outcome the caller decides. Error.Code is
// the kind of an error as the command-line tools print it.
//
// # Several servers
//
// New takes several addresses, with commas: the servers of a cluster, of which one is the primary.
//
//	c := client.New("a:1978,b:1978,c:1978", client.Options{})
//
// The client asks all of them for their role, sends its calls to the primary, and looks for another
// one when the primary dies, hangs, or says that it is none any more. A call waits for a primary
// until its context ends, or for Options.FindTime. What is sent again then:
//
//   - any call that was not sent, and any call on one record that the server has refused because it
//     is no primary: nothing has been done.
//   - reads without signals: Get, GetRecord, Check, Exists, TTL, GetBulk, GetBinary, the Match
//     methods, Status, Report, Void, Echo.
//   - with Options.RepeatUpdates also Set, SetBulk, SetBinary, Touch and Remove. They are
//     idempotent. But when the first one was carried out and only its reply was lost, the second
//     one comes later, and may replace what another client has stored in between. So this is for
//     records that have one writer. Remove returns ErrNoRecord if the first one has removed the
//     record.
//
// Nothing else is sent again once it may have reached a server: Add, Replace, Append, increments,
// CAS, Seize, RemoveBulk, Clear, scripts, Call of other procedures, and everything with signals.
// Cursors, Copy and FollowLog begin at the primary and end with its connection; Watch and Follow go
// on at the next one, when the servers are a cluster. Locks, counters, sequences and quotas have
// one address.
//
// A server that another one has followed as a slave and that clients may write to is found to be
// no primary within Options.CheckTime only. Start slaves with -slave-read-only, so that they refuse
// updates by themselves.
package client
