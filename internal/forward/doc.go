// Package forward moves connections of clients to the primary, so that a client with the address of
// any server can update (-forward).
//
//	if f.Away() && updates {
//		over, err := f.Move(conn, frame.MemberData, nil) // returns when the connection is over
//		…
//	}
//
// # The rule
//
// On a server that is not the primary, a connection is served here until its first update. At that
// request the whole connection moves: the bytes of the request, which nobody has taken from the
// buffer yet, and all that follow are copied to a connection of package member to the primary, and
// everything that the primary answers is copied back. The primary is told who the client is, and
// applies its own access rules to the client.
//
//	client ── GET ──► this server            answers from its own records
//	client ── PUT ──► this server ══════════► primary
//	client ◄═════════ this server ◄══════════ primary      … until either side closes
//
// What follows from it:
//
//   - Replies and errors are the primary's, byte for byte, and pipelined requests keep their order.
//   - A client reads what it has written, since its later reads go to the primary too.
//   - The kernel moves the bytes where neither side speaks TLS (splice(2)); they never enter this
//     process.
//   - A connection that only reads never leaves this server.
//
// # What was rejected
//
// To relay each update, and to answer the reads between the updates here, would spare the primary
// those reads. But this server would have to find the end of every reply of every protocol, and for
// requests without a reply (noreply, quiet opcodes, flags of the binary protocol) there is nothing
// to wait for before the next read may be answered. And a client would not find what it has just
// written, unless this server waited for its own follower to receive it. A mistake in any of that
// gives a client the reply to another request.
//
// To tell the client where the primary is cannot work: no client of 2011 knows such a reply.
//
// # What moves at once
//
// Requests whose effect is in the memory of one server move like updates, since their next step may
// be an update or must meet another client's: cursors, WAIT and SIGNAL, scripts, logins of
// memcached, its queues, and requests for the unique numbers of cas, which differ from server to
// server. All connections of counters, locks, sequences and quotas move at their first byte: only
// the primary serves them.
//
// # Access
//
// At the first update this server asks its own rules whether the client may do anything of the
// kind: whether the client has the right to write at all, and for a verb of REST, or a command of
// memcached, this very key. A procedure's parameters are not read for that, since they may be a
// body of many megabytes, or one that a second look would spoil. The primary applies its rules to
// all of them, for the real client.
//
// # When the primary is gone
//
// Before the move nothing has been done. If the primary is not known or cannot be reached within
// Options.Wait, the client is told so in its protocol's words, and its connection ends, because the
// rest of the request has not been read.
//
// After the move this server cannot know what the primary has done. So if the connection to the
// primary breaks, the client's is closed, as by a server that dies.
//
// When another server becomes the primary, moved connections end: this server sends no further
// request, lets the former primary answer what it has received, for at most drainTime, and closes.
//
// # No loops
//
// A connection that has been forwarded is never forwarded again: on a server that is not the
// primary (any more) its updates are refused.
package forward
