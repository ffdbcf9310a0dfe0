// Package lock serves named locks to many clients, as JESync does, over lines of text. The protocol
// is specified in the "JESync Protocol Specification": requests in its section 1, status in 3 and
// 4.
//
//	s, err := lock.New(lock.Options{Fences: fences})
//	s.Start(listener)
//	defer s.Close()
//
// A lock belongs to the connection that it was granted to, until the connection releases the lock,
// the lock expires, or the connection ends. Each request says how many holders it allows at the
// same time (MAX), how long it is willing to wait (TIMEOUT) and how long it will hold the lock at
// most (EXPIRES). Waiting requests are granted in their order, with one exception: while a request
// waits because it allows fewer holders than there are, requests with a greater MAX overtake it,
// unless Options.StrictOrder is set.
//
// Locks are in memory only: a restart begins without locks, because it has ended all connections.
// Fencing tokens outlive the process: they grow for ever, across restarts.
//
// # Commands
//
// Words are separated by one space; lines end with LF or CRLF. G is the number of holders, W the
// number of waiting requests.
//
//	lock KEY [MAX [TIMEOUT [EXPIRES]]]   GRANTED G W KEY SECONDS, or TIMEOUT G W KEY;
//	                                     defaults 1, -1 (for ever), 120 seconds
//	release KEY                          RELEASED G W KEY, or NOT_RELEASED G W KEY
//	status KEY                           STATUS G W KEY
//	status-by-key, status-by-grants,     a STATUS line for each key; nothing marks the end
//	status-by-requests
//	quit                                 a RELEASED line for each lock; then the connection ends
//
// The holder of a lock that expires receives two lines that it has not asked for, RELEASED and
// EXPIRED. Replies are not in the order of requests: a request that waits does not hold up the
// requests behind it.
//
// The original has no further commands. It answers these words with INVALID_COMMAND:
//
//	lock-fenced KEY [MAX [TIMEOUT [EXPIRES]]]  as lock; GRANTED G W KEY SECONDS TOKEN,
//	                                           or NO_TOKEN G W KEY
//	renew KEY [EXPIRES]                        RENEWED G W KEY SECONDS, or NOT_RENEWED G W KEY;
//	                                           it never waits
//	cancel KEY                                 CANCELLED G W KEY: this connection's request waits
//	                                           no longer; or NOT_CANCELLED
//	cancel KEY ADDRESS                         the same for another connection, which receives
//	                                           TIMEOUT; if it holds the lock, the lock expires now
//	list [KEY]                                 HOLDER KEY ADDRESS AGE LEFT MAX TOKEN and
//	                                           WAITER KEY ADDRESS AGE LEFT MAX lines, then END
//
// A line that cannot be understood is answered INVALID_COMMAND or INVALID_PARAMETER, a request over
// a limit TOO_MANY_KEYS G W KEY or TOO_MANY_WAITERS G W KEY, and a list for which there is no
// memory TOO_MANY_LISTS.
//
// # Parts
//
// Each file uses only files that stand before it here. command.go and reply.go hold the text of the
// protocol. The table knows no sockets: state.go has what it consists of, key.go, timers.go and
// session.go change one part, and table.go and steps.go carry out steps, with tokens of fence.go,
// and leave lines of text with sessions. server.go has the options and the clock; outbox.go sends
// the lines of a connection (conn.go), also those that other connections and the clock have caused;
// serve.go reads and answers commands, with access.go, list.go and stats.go.
package lock
